#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/images/image_folder.h"
#include "data/images/jpeg.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamesShown = 3;

std::string some_of(const std::vector<std::string>& names) {
  if (names.size() <= 2 * kNamesShown) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, ... {}", fmt::join(names.begin(), names.begin() + kNamesShown, ", "), names.back());
}

// "2000 images of 20 of 20 classes, 100 per class" or "... 3 to 140 per class".
std::string counts_of(const ImageFolder& folder) {
  std::vector<std::size_t> counts(folder.classes.size());
  for (const ImageItem& item : folder.items) ++counts[static_cast<std::size_t>(item.label)];
  const auto used = static_cast<std::size_t>(std::count_if(counts.begin(), counts.end(), [](auto n) { return n > 0; }));
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  return fmt::format("{} images of {} of {} classes, {} per class", folder.items.size(), used, counts.size(),
                     *least == *most ? std::to_string(*most) : fmt::format("{} to {}", *least, *most));
}

std::string kind_of(const fs::path& path, JpegDecoder& decoder) {
  try {
    const std::string bytes = read_file(path);
    const ImageSize size = decoder.open(bytes);
    const char* channels = decoder.num_channels() == 1 ? " grey" : decoder.num_channels() == 4 ? " CMYK" : "";
    return fmt::format("{} x {}{}", size.width, size.height, channels);
  } catch (const Error& error) {
    return fmt::format("broken ({}: {})", path.string(), error.what());
  }
}

// Opens one file per class: all of ImageNet would take minutes.
std::string first_images_of(const ImageFolder& folder) {
  JpegDecoder decoder;
  std::map<std::string, int> kinds;
  std::int64_t last_label = -1;
  for (std::size_t i = 0; i < folder.items.size(); ++i) {
    if (folder.items[i].label == last_label) continue;
    last_label = folder.items[i].label;
    ++kinds[kind_of(folder.path_of(i), decoder)];
  }
  std::string text;
  for (const auto& [kind, count] : kinds) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", kind, count);
  return text;
}

const char* name_of(ImageFolderForm form) {
  switch (form) {
    case ImageFolderForm::kOneTree:
      return "one tree of class folders, without splits";
    case ImageFolderForm::kTwoTrees:
      return "train/<class> and val/<class>";
    case ImageFolderForm::kTinyImageNet:
      return "TinyImageNet: train/<class>/images, val/images with val_annotations.txt";
  }
  return "";
}

}  // namespace

std::string describe_image_folder(const fs::path& data_dir) {
  const ImageFolder train = read_image_folder(data_dir, ImageSplit::kTrain);
  std::string text =
      fmt::format("folder      {}\nform        {}\n", data_dir.string(), name_of(image_folder_form(data_dir)));
  text += fmt::format("classes     {}: {}\n", train.classes.size(), printable(some_of(train.classes)));
  text += fmt::format("train       {}\n", counts_of(train));
  std::error_code unreadable;
  if (fs::is_directory(data_dir / "val", unreadable)) {
    text += fmt::format("validation  {}\n", counts_of(read_image_folder(data_dir, ImageSplit::kValidation)));
  } else {
    text += "validation  none (no folder val)\n";
  }
  text += fmt::format("first of each class: {}\n", first_images_of(train));
  return text;
}

}  // namespace tessera
