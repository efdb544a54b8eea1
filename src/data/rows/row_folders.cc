#include "data/rows/row_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/hugging_face_cache.h"
#include "core/json_reader.h"
#include "core/text.h"
#include "data/rows/row_format.h"
#include "data/rows/row_splits.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 10> kNamesBesideRows = {
    "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json",  "metadata.json",
    "config.json",       "requirements.txt",   "README.txt",        "LICENSE.txt", "license.txt"};

// What is in a folder of data, but holds no rows: metadata, hidden files, and what map() of `datasets` left.
bool is_beside_rows(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with('.') || name.starts_with("__") ||
         (name.starts_with("cache-") && file.extension() == ".arrow") ||
         std::ranges::find(kNamesBesideRows, name) != kNamesBesideRows.end();
}

std::vector<fs::path> all_row_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator each(folder, error);
  for (; !error && each != fs::end(each); each.increment(error)) {
    const fs::path& path = each->path();
    if (is_beside_rows(path)) {
      if (is_folder(path)) each.disable_recursion_pending();
    } else if (row_format_of(path) && is_file(path)) {
      files.push_back(path);
    }
  }
  if (error) refuse_file(folder.string(), "cannot be read: " + error.message());
  std::ranges::sort(files);
  return files;
}

// Files that hold the same rows in two formats would count them twice.
void check_one_format(const std::vector<fs::path>& files, const std::string& place) {
  const auto format_of = [](const fs::path& file) {
    const RowFormat format = *row_format_of(file);
    return format == RowFormat::kJsonLines ? RowFormat::kJson : format;
  };
  for (const fs::path& file : files) {
    if (format_of(file) == format_of(files.front())) continue;
    throw UsageError(
        fmt::format("{} has files of several formats, {} and {} among them: name those to be read, by "
                    "their names or a pattern such as {}",
                    place, files.front().filename().string(), file.filename().string(),
                    (fs::path(place) / ("*" + file.extension().string())).string()));
  }
}

// state.json of save_to_disk() lists the files.
std::vector<fs::path> saved_files(const fs::path& folder) {
  const fs::path state = folder / "state.json";
  const JsonText text(read_file(state), state.string());
  std::vector<fs::path> files;
  for (const JsonReader& file : text.root().at("_data_files").items()) {
    const std::string name = file.text("filename");
    if (fs::path(name).filename() != name || name.starts_with('.')) file.refuse("expected the name of a file");
    files.push_back(folder / name);
  }
  if (files.empty()) refuse_file(state.string(), "its _data_files name no file");
  return files;
}

std::vector<fs::path> files_of_saved_splits(const fs::path& folder, const std::string& split) {
  const fs::path dict = folder / "dataset_dict.json";
  const JsonText text(read_file(dict), dict.string());
  FilesBySplit folders;
  for (const std::string& name : text.root().at("splits").as_texts()) {
    if (fs::path(name).filename() != name || name.starts_with('.')) refuse_file(dict.string(), "expected plain names");
    folders[name] = {folder / name};
  }
  if (folders.empty()) refuse_file(dict.string(), "expected at least one split, found none");
  return saved_files(choose_split(folders, split, folder.string()).front());
}

// The files of one split of the hub's folder. Its configurations, each in a folder of its own, are different data.
std::vector<fs::path> files_of_snapshot(const fs::path& snapshot, const std::string& split) {
  std::vector<fs::path> files = row_files_in(snapshot, split);
  std::set<std::string> folders;
  for (const fs::path& file : files) folders.insert(file.parent_path().string());
  if (folders.size() > 1) {
    throw UsageError(fmt::format("{} has several configurations: name the folder of one, such as {}", snapshot.string(),
                                 *folders.begin()));
  }
  return files;
}

// datasets/tatsu-lab___alpaca/default/0.0.0/<fingerprint>/alpaca-train.arrow
std::vector<fs::path> files_of_datasets_cache(const fs::path& cached, const std::string& split) {
  std::map<fs::path, FilesBySplit> by_folder;
  for (const fs::path& file : all_row_files(cached)) {
    if (file.extension() == ".arrow") by_folder[file.parent_path()][split_in_cached_name(file)].push_back(file);
  }
  if (by_folder.empty()) return {};
  if (by_folder.size() > 1) {
    std::vector<std::string> folders;
    for (const auto& [folder, files] : by_folder) folders.push_back(folder.string());
    throw UsageError(fmt::format("{} has several configurations or versions: name the folder of one of {}",
                                 cached.string(), listed(folders)));
  }
  const auto& [folder, files] = *by_folder.begin();
  return choose_split(files, split, folder.string());
}

}  // namespace

std::vector<fs::path> row_files_in(const fs::path& folder, const std::string& split) {
  if (is_file(folder / "dataset_dict.json")) return files_of_saved_splits(folder, split);
  if (is_file(folder / "state.json") && is_file(folder / "dataset_info.json")) return saved_files(folder);
  FilesBySplit by_split;
  for (const fs::path& file : all_row_files(folder)) {
    by_split[split_in_name(file.lexically_relative(folder))].push_back(file);
  }
  if (by_split.empty()) {
    refuse_file(folder.string(), "the folder has no file that ends in one of " + known_row_endings());
  }
  std::vector<fs::path> files = choose_split(by_split, split, folder.string());
  check_one_format(files, folder.string());
  return files;
}

std::vector<fs::path> row_files_of_hub_name(const std::string& name, const Environment& environment,
                                            const std::string& split, std::vector<std::string>& tried) {
  const fs::path downloaded = hub_cache(environment) / hub_folder_name("datasets", name);
  tried.push_back(downloaded.string());
  // Older data sets are scripts that only `datasets` can run.
  const auto snapshot = cached_snapshot(downloaded);
  if (snapshot && !all_row_files(*snapshot).empty()) return files_of_snapshot(*snapshot, split);
  const fs::path cached = datasets_cache(environment) / join(tessera::split(name, '/'), "___");
  tried.push_back(cached.string());
  return is_folder(cached) ? files_of_datasets_cache(cached, split) : std::vector<fs::path>();
}

}  // namespace tessera
