#include "experiment/import/find_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/error.h"
#include "core/text.h"
#include "experiment/import/sbatch_lines.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostScriptBytes = 1 << 20;  // job scripts have a few thousand

// The text if the file can be a job script.
std::string script_text(const fs::path& path) {
  std::error_code none;
  if (fs::file_size(path, none) > kMostScriptBytes || none) return "";
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return text.find('\0') == std::string::npos ? text : "";
}

}  // namespace

std::filesystem::path find_script(const std::filesystem::path& path) {
  std::error_code none;
  if (!fs::exists(path, none)) refuse_file(path.string(), "there is no such script or folder");
  if (!fs::is_directory(path, none)) {
    if (fs::file_size(path, none) > kMostScriptBytes) refuse_file(path.string(), "too large for a job script");
    return path;
  }
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file(none) && has_sbatch_lines(script_text(entry.path()))) {
      found.push_back(entry.path().filename().string());
    }
  }
  std::sort(found.begin(), found.end());
  if (found.empty()) refuse_file(path.string(), "no file in this folder has #SBATCH lines; name the script itself");
  if (found.size() > 1) {
    refuse_file(path.string(),
                fmt::format("{} files have #SBATCH lines, name one: {}", found.size(), join(found, ", ")));
  }
  return path / found.front();
}

}  // namespace tessera
