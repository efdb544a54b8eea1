#include "data/images/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

// The endings that torchvision takes for pictures; the first two are ours too.
constexpr std::array<std::string_view, 2> kJpegEndings = {".jpg", ".jpeg"};
constexpr std::array<std::string_view, 7> kOtherEndings = {".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
constexpr int kMaxDepth = 32;  // deeper is a link that leads back to its own folder
constexpr const char* kAnnotations = "val_annotations.txt";

template <std::size_t n>
bool has_ending(std::string_view name, const std::array<std::string_view, n>& endings) {
  const std::string lower = lower_case(name.substr(name.size() - std::min<std::size_t>(name.size(), 8)));
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return lower.ends_with(ending); });
}

bool is_folder(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_directory(path, unreadable);
}

struct Listing {
  std::vector<std::string> folders, files;  // names, sorted
};

Listing list(const fs::path& folder) {
  Listing listing;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::error_code unreadable;  // a link that leads nowhere is no folder; opening it will say so
    auto& names = entries->is_directory(unreadable) ? listing.folders : listing.files;
    names.push_back(entries->path().filename().string());
  }
  if (error) throw UsageError(fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  std::sort(listing.folders.begin(), listing.folders.end());
  std::sort(listing.files.begin(), listing.files.end());
  return listing;
}

// A JPEG by its name; throws for a picture of another kind.
bool is_jpeg(const fs::path& folder, const std::string& name) {
  if (has_ending(name, kJpegEndings)) return true;
  if (has_ending(name, kOtherEndings)) {
    throw UsageError(
        fmt::format("{} is not a JPEG: only .jpg and .jpeg are read; convert the picture or take it out of the folder",
                    (folder / name).string()));
  }
  return false;
}

using FilesOfFolder = std::pair<std::string, std::vector<std::string>>;

void walk(const fs::path& root, const std::string& folder, int depth, std::vector<FilesOfFolder>& found) {
  if (depth > kMaxDepth) {
    throw UsageError(fmt::format("{}: more than {} folders deep; does a link lead back to its own folder?",
                                 (root / folder).string(), kMaxDepth));
  }
  Listing listing = list(root / folder);
  std::erase_if(listing.files, [&](const std::string& name) { return !is_jpeg(root / folder, name); });
  found.emplace_back(folder, std::move(listing.files));
  for (const std::string& name : listing.folders) walk(root, folder + "/" + name, depth + 1, found);
}

// Every JPEG below root/folder, the folders in the order of their whole paths ("a-b" before "a/b", as torchvision).
std::vector<std::string> jpegs_below(const fs::path& root, const std::string& folder) {
  std::vector<FilesOfFolder> found;
  walk(root, folder, 0, found);
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (const auto& [below, files] : found) {
    for (const std::string& file : files) paths.push_back(below + "/" + file);
  }
  return paths;
}

std::vector<std::string> class_folders(const fs::path& tree) {
  std::vector<std::string> classes = list(tree).folders;
  if (classes.empty()) {
    throw UsageError(
        fmt::format("{} holds no class folders (expected: one folder a class, with its JPEGs inside)", tree.string()));
  }
  return classes;
}

// root/tree/<class>/**: the classes in `folders` with their numbers among folder.classes.
void add_tree(ImageFolder& folder, const std::string& tree, const std::vector<std::string>& folders) {
  std::unordered_map<std::string, std::int64_t> number;
  for (const std::string& name : folder.classes) number.emplace(name, std::ssize(number));
  std::vector<std::string> empty;
  for (const std::string& name : folders) {
    const auto found = number.find(name);
    if (found == number.end()) {
      throw UsageError(fmt::format("{} is a class that the training folder {} does not have",
                                   (folder.root / tree / name).string(), (folder.root / "train").string()));
    }
    const std::vector<std::string> paths = jpegs_below(folder.root, tree.empty() ? name : tree + "/" + name);
    for (const std::string& path : paths) folder.items.push_back({path, found->second});
    if (paths.empty()) empty.push_back(name);
  }
  if (!empty.empty()) {
    throw UsageError(fmt::format("{}: no JPEG for {} {} (expected: .jpg or .jpeg files in every class folder)",
                                 (folder.root / tree).string(), empty.size() == 1 ? "class" : "classes",
                                 printable(join(empty, ", "))));
  }
}

// One line a picture: name, class, then a box that classification does not need; separated by tabs.
void add_annotated(ImageFolder& folder) {
  const fs::path annotations = folder.root / "val" / kAnnotations;
  const std::string text = read_file(annotations);
  std::unordered_map<std::string_view, std::int64_t> number;
  for (const std::string& name : folder.classes) number.emplace(name, std::ssize(number));
  const std::vector<std::string> files = list(folder.root / "val" / "images").files;
  std::unordered_set<std::string> left;
  for (const std::string& name : files) {
    if (is_jpeg(folder.root / "val" / "images", name)) left.insert(name);
  }

  std::size_t line_number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++line_number;
    if (trim(line).empty()) continue;
    const auto fail = [&](const std::string& what) {
      throw UsageError(fmt::format("{}:{}: {}", annotations.string(), line_number, what));
    };
    const std::vector<std::string> fields = split(trim(line), '\t');
    if (fields.size() < 2) fail("expected a file name, a tab and a class, found '" + printable(line) + "'");
    const auto found = number.find(fields[1]);
    if (found == number.end()) fail("class '" + printable(fields[1]) + "' has no folder in train/");
    if (left.erase(fields[0]) == 0) {
      const bool twice = std::binary_search(files.begin(), files.end(), fields[0]);
      fail(
          fmt::format("'{}' {}", printable(fields[0]), twice ? "stands a second time" : "is not a JPEG in val/images"));
    }
    folder.items.push_back({"val/images/" + fields[0], found->second});
  }
  if (!left.empty()) {
    throw UsageError(fmt::format("{} has no line for {} of the JPEGs in val/images, {} among them",
                                 annotations.string(), left.size(),
                                 printable(*std::min_element(left.begin(), left.end()))));
  }
}

void add_validation(ImageFolder& folder) {
  const fs::path tree = folder.root / "val";
  if (!is_folder(tree)) {
    throw UsageError(fmt::format("{} has no folder val (expected: val/<class>/*.jpg, or val/images with {})",
                                 folder.root.string(), kAnnotations));
  }
  if (std::error_code unreadable; fs::exists(tree / kAnnotations, unreadable)) return add_annotated(folder);
  const std::vector<std::string> folders = class_folders(tree);
  if (folders == std::vector<std::string>{"images"} && folder.classes != folders) {
    throw UsageError(
        fmt::format("{} is missing: it names the class of each picture in val/images", (tree / kAnnotations).string()));
  }
  add_tree(folder, "val", folders);
}

}  // namespace

ImageFolder read_image_folder(const fs::path& data_dir, ImageSplit split) {
  if (!is_folder(data_dir)) throw UsageError(fmt::format("there is no folder {}", data_dir.string()));
  const bool has_splits = is_folder(data_dir / "train");
  if (!has_splits && is_folder(data_dir / "val")) {
    throw UsageError(fmt::format("{} has a folder val but no folder train (expected: both)", data_dir.string()));
  }
  ImageFolder folder;
  folder.root = data_dir;
  folder.classes = class_folders(has_splits ? data_dir / "train" : data_dir);
  if (split == ImageSplit::kValidation) {
    add_validation(folder);
  } else {
    add_tree(folder, has_splits ? "train" : "", folder.classes);
  }
  return folder;
}

}  // namespace tessera
