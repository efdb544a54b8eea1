// A folder of pictures as numbered items, each ready for a model: decoded, cropped, resized; normalised on the device.
//
//   ImageDataset images(read_image_folder(dir, ImageSplit::kTrain), {.augment = true, .seed = 42});
//   std::vector<std::uint8_t> pixels(images.num_values());
//   images.load(17, epoch, pixels.data());
//
// load() and load_images() may be called from any number of threads; each keeps its own decoder and buffers. The result
// depends only on the seed, the epoch and the index. Errors name the file.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "data/images/crop.h"
#include "data/images/image_folder.h"

namespace tessera {

// ImageNet's, for byte values scaled to 0 to 1, as commonly written.
inline constexpr std::array<float, 3> kPixelMean = {0.485f, 0.456f, 0.406f};
inline constexpr std::array<float, 3> kPixelDeviation = {0.229f, 0.224f, 0.225f};

struct ImageSettings {
  bool augment = false;  // random crop and mirroring (training), or resize and centre crop (validation)
  std::uint64_t seed = 0;
  CropSettings crop = {};
};

class ImageDataset {
 public:
  // Throws UsageError if the crop's size is not 1 to 4096.
  explicit ImageDataset(ImageFolder folder, ImageSettings settings = {});

  std::int64_t size() const { return std::ssize(folder_.items); }
  std::int64_t num_classes() const { return std::ssize(folder_.classes); }
  const ImageFolder& folder() const { return folder_; }
  const ImageSettings& settings() const { return settings_; }
  std::int64_t label(std::int64_t index) const { return item(index).label; }
  std::size_t num_values() const {
    return static_cast<std::size_t>(3 * settings_.crop.crop_size) * settings_.crop.crop_size;
  }

  // Rows of interleaved R, G, B, num_values() in all.
  void load(std::int64_t index, std::uint32_t epoch, std::uint8_t* pixels_HWC) const;

 private:
  const ImageItem& item(std::int64_t index) const;
  void report_damage(const ImageItem& item, const std::string& warning) const;

  ImageFolder folder_;
  ImageSettings settings_;
  mutable std::atomic<int> num_damaged_ = 0;
};

struct ImageBatch {
  at::Tensor images;  // [B, 3, S, S], channels-last: bytes
  at::Tensor labels;  // [B], int64
};
ImageBatch load_images(const ImageDataset& images, std::span<const std::int64_t> indices, std::uint32_t epoch);

// (byte / 255 - mean) / deviation in `type`, on the device of the bytes [B, 3, S, S]: these are a quarter of the
// floats' size, in memory and in the copy to a GPU. On a CPU it writes into `earlier`, a result of before, if that has
// the same shape and type and nobody else holds it: pages of new memory take longer to come than to be written.
at::Tensor normalise(const at::Tensor& bytes, at::ScalarType type = at::kFloat, at::Tensor&& earlier = {});

}  // namespace tessera
