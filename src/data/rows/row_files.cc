#include "data/rows/row_files.h"

#include <fmt/format.h>
#include <glob.h>

#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/hugging_face_cache.h"
#include "core/text.h"
#include "data/rows/row_folders.h"
#include "data/rows/row_format.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

bool is_row_pattern(const std::string& name) {
  return name.find_first_of("*?[") != std::string::npos;
}

std::vector<fs::path> matches_of(const std::string& pattern) {
  if (pattern.find("**") != std::string::npos) {
    throw UsageError(
        fmt::format("{}: ** is not known in patterns; name the folder, and the folders within it are "
                    "searched, too",
                    pattern));
  }
  glob_t found{};
  std::vector<fs::path> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;  // sorted by glob()
}

std::vector<fs::path> files_of_pattern(const std::string& pattern) {
  std::vector<fs::path> files;
  for (const fs::path& path : matches_of(pattern)) {
    if (is_file(path) && row_format_of(path)) files.push_back(path);
  }
  if (files.empty()) {
    throw UsageError(fmt::format("no file matches {} and ends in one of {}", pattern, known_row_endings()));
  }
  return files;
}

// ", did you mean 'train.jsonl'?"
std::string advice_on_missing(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator each(path.has_parent_path() ? path.parent_path() : ".", error);
  for (; !error && each != fs::end(each); each.increment(error)) names.push_back(each->path().filename().string());
  return did_you_mean(path.filename().string(), names);
}

std::vector<fs::path> files_of_name(const std::string& name, const Environment& environment, const std::string& split) {
  if (is_folder(name)) return row_files_in(name, split);
  if (is_there(name)) return {name};  // open_rows() says what is wrong with it
  if (is_row_pattern(name)) return files_of_pattern(name);
  const std::string missing = fmt::format("there is no file or folder {}{}", name, advice_on_missing(name));
  // An ending is a path's: data/train.jsonl could be a hub's name, too.
  if (!is_hub_name(name) || row_format_of(name)) throw UsageError(missing);
  std::vector<std::string> tried;
  std::vector<fs::path> files = row_files_of_hub_name(name, environment, split, tried);
  if (!files.empty()) return files;
  throw UsageError(
      fmt::format("{0}, nor is the data set {1} in Hugging Face's caches, {2}: download it (huggingface-cli download "
                  "--repo-type dataset {1}), or name a file",
                  missing, name, join(tried, " and ")));
}

}  // namespace

std::vector<fs::path> find_row_files(const std::vector<std::string>& names, const Environment& environment,
                                     const std::string& split) {
  std::vector<fs::path> files;
  std::set<fs::path> seen;
  for (const std::string& name : names) {
    if (name.empty()) throw UsageError("expected the name of a file, found an empty one");
    for (fs::path& file : files_of_name(name, environment, split)) {
      if (!seen.insert(file).second) {
        throw UsageError(fmt::format("{} is named twice, the second time by {}", file.string(), name));
      }
      files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace tessera
