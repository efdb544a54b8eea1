// Pictures in folders, one folder per class: which files there are and which class each belongs to.
//
// Classes are numbered in byte order of their names, and the files of a class come in the order of their paths:
// torchvision's ImageFolder gives the same list. Validation uses the numbers of the training classes, matched by name
// (torchvision would renumber the folders).
//
// Only JPEG is read. A picture of another kind (by its file ending) is refused by name rather than skipped; files that
// are not pictures are skipped, as torchvision does. Nothing here opens a picture; read_image_folder() only lists
// folders, 1.3 million files in seconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct ImageItem {
  std::string path;        // below ImageFolder::root
  std::int64_t label = 0;  // index into ImageFolder::classes
};

struct ImageFolder {
  std::filesystem::path root;
  std::vector<std::string> classes;
  std::vector<ImageItem> items;

  std::filesystem::path path_of(std::size_t index) const { return root / items[index].path; }
};

enum class ImageSplit { kTrain, kValidation };

enum class ImageFolderForm {
  kOneTree,       // DIR/<class>/**.jpg, without splits: used for training
  kTwoTrees,      // DIR/train/<class>/**.jpg and DIR/val/<class>/**.jpg
  kTinyImageNet,  // the same train; DIR/val/images/*.jpg, their classes in DIR/val/val_annotations.txt
};

// Decided by which folders exist. val_annotations.txt without val/images is ignored: many users move the pictures into
// class folders and leave it behind.
ImageFolderForm image_folder_form(const std::filesystem::path& data_dir);

// Throws UsageError naming the folder, file or line and what was expected. In TinyImageNet's form, validation items
// come in the order of the annotations.
ImageFolder read_image_folder(const std::filesystem::path& data_dir, ImageSplit split);

// val_annotations.txt of TinyImageNet: one line per picture with its file, its class and a box that classification does
// not need, separated by tabs. A byte order mark, CRLF and empty lines are accepted.
//
// The pictures in the order of the lines; a path is `folder`, a slash and the file. `files`, sorted, are the JPEGs
// present: each must have one line. Throws UsageError naming `origin` and the line.
std::vector<ImageItem> parse_val_annotations(std::string_view text, const std::string& origin,
                                             const std::vector<std::string>& classes,
                                             const std::vector<std::string>& files, const std::string& folder);

// For `tessera data inspect`: form, classes, splits, images per class, and the size and kind of the first image of each
// class. Throws UsageError if no split can be read.
std::string describe_image_folder(const std::filesystem::path& data_dir);

}  // namespace tessera
