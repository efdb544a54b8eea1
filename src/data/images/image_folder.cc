#include "data/images/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <unordered_map>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

// The endings that torchvision treats as pictures; the first two are ours too.
constexpr std::array<std::string_view, 2> kJpegEndings = {".jpg", ".jpeg"};
constexpr std::array<std::string_view, 7> kOtherEndings = {".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
constexpr int kMaxDepth = 32;  // deeper is a link that leads back to its own folder
constexpr const char* kAnnotations = "val_annotations.txt";

template <std::size_t n>
bool has_ending(std::string_view name, const std::array<std::string_view, n>& endings) {
  const std::string lower = lower_case(name.substr(name.size() - std::min<std::size_t>(name.size(), 8)));
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return lower.ends_with(ending); });
}

void require_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::directory) return;
  if (type == fs::file_type::not_found) throw UsageError(fmt::format("there is no folder '{}'", path.string()));
  throw UsageError(type == fs::file_type::none
                       ? fmt::format("cannot read the folder {}: {}", path.string(), error.message())
                       : fmt::format("{} is a file (expected: a folder of pictures)", path.string()));
}

struct Listing {
  std::vector<std::string> folders, files, others;  // names; sorted, but for the others: pipes, sockets, devices
};

Listing list(const fs::path& folder) {
  Listing listing;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::error_code unreadable;  // a dangling link counts as a file; opening it will report it
    const bool is_folder = entries->is_directory(unreadable);
    const bool is_other = !is_folder && entries->is_other(unreadable);
    auto& names = is_folder ? listing.folders : is_other ? listing.others : listing.files;
    names.push_back(entries->path().filename().string());
  }
  if (error) throw UsageError(fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  std::sort(listing.folders.begin(), listing.folders.end());
  std::sort(listing.files.begin(), listing.files.end());
  return listing;
}

// Whether the name is a JPEG's; throws for a picture of another kind.
bool is_jpeg(const fs::path& folder, const std::string& name) {
  if (has_ending(name, kJpegEndings)) return true;
  if (has_ending(name, kOtherEndings)) {
    throw UsageError(
        fmt::format("{} is not a JPEG: only .jpg and .jpeg are read; convert the picture or remove it from the folder",
                    (folder / name).string()));
  }
  return false;
}

// The JPEGs among a folder's files. A pipe with a picture's name is refused here: opening it would wait for ever.
std::vector<std::string> jpegs_in(const fs::path& folder, Listing listing) {
  for (const std::string& name : listing.others) {
    if (!is_jpeg(folder, name)) continue;
    throw UsageError(fmt::format("{} is a pipe, a socket or a device, not a picture: remove it from the folder",
                                 (folder / name).string()));
  }
  std::erase_if(listing.files, [&](const std::string& name) { return !is_jpeg(folder, name); });
  return std::move(listing.files);
}

using FilesOfFolder = std::pair<std::string, std::vector<std::string>>;

void walk(const fs::path& root, const std::string& folder, int depth, std::vector<FilesOfFolder>& found) {
  if (depth > kMaxDepth) {
    throw UsageError(fmt::format("{}: more than {} folders deep; does a link point back to its own folder?",
                                 (root / folder).string(), kMaxDepth));
  }
  const Listing listing = list(root / folder);
  found.emplace_back(folder, jpegs_in(root / folder, listing));
  for (const std::string& name : listing.folders) walk(root, folder + "/" + name, depth + 1, found);
}

// Every JPEG below root/folder, with folders in the order of their full paths ("a-b" before "a/b", as torchvision).
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
        fmt::format("{} holds no class folders (expected: one folder per class, with its JPEGs)", tree.string()));
  }
  return classes;
}

// root/tree/<class>/**: the classes in `folders`, numbered as in folder.classes.
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

void add_annotated(ImageFolder& folder) {
  const fs::path tree = folder.root / "val";
  for (const std::string& name : list(tree).folders) {
    if (name == "images" || !std::binary_search(folder.classes.begin(), folder.classes.end(), name)) continue;
    throw UsageError(fmt::format("{} holds both images, for {}, and class folders such as {}: remove one or the other",
                                 tree.string(), kAnnotations, printable(name)));
  }
  const std::vector<std::string> files = jpegs_in(tree / "images", list(tree / "images"));
  folder.items = parse_val_annotations(read_file(tree / kAnnotations), (tree / kAnnotations).string(), folder.classes,
                                       files, "val/images");
}

void add_validation(ImageFolder& folder) {
  const fs::path tree = folder.root / "val";
  if (!is_folder(tree)) {
    throw UsageError(fmt::format("{} has no folder val (expected: val/<class>/*.jpg, or val/images with {})",
                                 folder.root.string(), kAnnotations));
  }
  if (image_folder_form(folder.root) == ImageFolderForm::kTinyImageNet) return add_annotated(folder);
  const std::vector<std::string> folders = class_folders(tree);
  if (folders == std::vector<std::string>{"images"} && folder.classes != folders) {
    throw UsageError(
        fmt::format("{} is missing: it names the class of each picture in val/images", (tree / kAnnotations).string()));
  }
  add_tree(folder, "val", folders);
}

// Without this check, a folder that holds a whole data set would count as one class with all its training and
// validation pictures.
void refuse_folder_of_data_sets(const fs::path& data_dir, const std::vector<std::string>& classes) {
  for (const std::string& name : classes) {
    if (is_folder(data_dir / name / "train") && is_folder(data_dir / name / "val")) {
      throw UsageError(fmt::format("{} holds a data set with train and val, not classes: use {}", data_dir.string(),
                                   (data_dir / name).string()));
    }
  }
}

}  // namespace

ImageFolderForm image_folder_form(const fs::path& data_dir) {
  if (!is_folder(data_dir / "train")) return ImageFolderForm::kOneTree;
  std::error_code unreadable;
  const bool is_annotated = fs::exists(data_dir / "val" / kAnnotations, unreadable);
  return is_annotated && is_folder(data_dir / "val" / "images") ? ImageFolderForm::kTinyImageNet
                                                                : ImageFolderForm::kTwoTrees;
}

ImageFolder read_image_folder(const fs::path& data_dir, ImageSplit split) {
  require_folder(data_dir);
  const bool has_splits = image_folder_form(data_dir) != ImageFolderForm::kOneTree;
  if (!has_splits && is_folder(data_dir / "val")) {
    throw UsageError(fmt::format("{} has a folder val but no folder train (expected: both)", data_dir.string()));
  }
  ImageFolder folder;
  folder.root = data_dir;
  folder.classes = class_folders(has_splits ? data_dir / "train" : data_dir);
  if (!has_splits) refuse_folder_of_data_sets(data_dir, folder.classes);
  if (split == ImageSplit::kValidation) {
    add_validation(folder);
  } else {
    add_tree(folder, has_splits ? "train" : "", folder.classes);
  }
  return folder;
}

std::vector<ImageItem> parse_val_annotations(std::string_view text, const std::string& origin,
                                             const std::vector<std::string>& classes,
                                             const std::vector<std::string>& files, const std::string& folder) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::unordered_map<std::string_view, std::int64_t> number;
  for (const std::string& name : classes) number.emplace(name, std::ssize(number));
  std::unordered_map<std::string_view, std::size_t> line_of;
  for (const std::string& name : files) line_of.emplace(name, 0);

  std::vector<ImageItem> items;
  std::size_t line_number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++line_number;
    if (trim(line).empty()) continue;
    const auto refuse = [&](const std::string& what) {
      throw UsageError(fmt::format("{}:{}: {}", origin, line_number, what));
    };
    const std::vector<std::string> fields = split(trim(line), '\t');
    if (fields.size() < 2) refuse("expected a file name, a tab and a class, found '" + printable(line) + "'");
    const auto label = number.find(fields[1]);
    if (label == number.end()) refuse("class '" + printable(fields[1]) + "' has no folder in train/");
    const auto file = line_of.find(fields[0]);
    if (file == line_of.end()) refuse(fmt::format("'{}' is not a JPEG in {}", printable(fields[0]), folder));
    if (file->second != 0) {
      refuse(fmt::format("'{}' is listed twice, first in line {}", printable(fields[0]), file->second));
    }
    file->second = line_number;
    items.push_back({folder + "/" + fields[0], label->second});
  }

  if (items.size() < files.size()) {
    const auto first = std::find_if(files.begin(), files.end(), [&](const auto& name) { return line_of[name] == 0; });
    throw UsageError(fmt::format("{} has no line for {} of the JPEGs in {}, such as {}", origin,
                                 files.size() - items.size(), folder, printable(*first)));
  }
  if (items.empty()) throw UsageError(fmt::format("{} lists no pictures, and {} holds none", origin, folder));
  return items;
}

}  // namespace tessera
