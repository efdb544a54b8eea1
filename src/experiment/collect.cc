#include "experiment/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

bool is_result(const fs::path& path) {
  static const std::vector<std::string> endings = {".json", ".csv", ".txt", ".html", ".out", ".log", ".sh", ".gz"};
  const std::string name = path.filename().string();
  return name == "exit_status" ||
         std::any_of(endings.begin(), endings.end(), [&](const std::string& end) { return name.ends_with(end); });
}

bool is_left_out(const std::string& folder) {
  return folder.starts_with("checkpoint-") || folder == "wandb" || folder == "tokenizer";
}

void copy_results(const fs::path& from, const fs::path& to) {
  fs::recursive_directory_iterator place(from);
  for (; place != fs::recursive_directory_iterator(); ++place) {
    if (place->is_directory()) {
      if (is_left_out(place->path().filename().string())) place.disable_recursion_pending();
      continue;
    }
    if (!place->is_regular_file() || !is_result(place->path())) continue;
    const fs::path target = to / fs::relative(place->path(), from);
    fs::create_directories(target.parent_path());
    fs::copy_file(place->path(), target, fs::copy_options::overwrite_existing);
  }
}

}  // namespace

void collect(const std::vector<StoredRun>& runs, const fs::path& target) {
  for (const StoredRun& run : runs) {
    try {
      copy_results(run.folder, target / run.experiment / run.folder.filename());
    } catch (const fs::filesystem_error& error) {
      throw Error(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    }
  }
}

}  // namespace tessera
