// A folder of pictures as numbered items, each ready for a model: decoded, cropped, resized, normalised.
//
//   ImageDataset images(read_image_folder(dir, ImageSplit::kTrain), {.augment = true, .seed = 42});
//   std::vector<float> pixels(images.num_values());
//   images.load(17, epoch, pixels.data());
//
// load() may be called from any number of threads; each keeps its own decoder and buffers. The result depends only on
// the seed, the epoch and the index. Errors name the file. load_images() and image_loader() give batches of them as
// tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/images/crop.h"
#include "data/images/image_folder.h"
#include "data/images/resample.h"
#include "data/loading/prefetch_loader.h"

namespace tessera {

struct ImageSettings {
  bool augment = false;  // random crop and mirroring (training), or resize and centre crop (validation)
  std::uint64_t seed = 0;
  CropSettings crop = {};
  Normalization normalization = {};
};

// A picture in memory as a model sees it; draws from `random` if the settings augment. One thread at a time.
class ImageReader {
 public:
  void read(std::string_view jpeg, const ImageSettings& settings, RandomStream random, std::uint8_t* pixels_HWC);
  void read(std::string_view jpeg, const ImageSettings& settings, RandomStream random, float* pixels_HWC);
  const std::string& warning() const { return decoder_.warning(); }

 private:
  RgbView decode(std::string_view jpeg, const ImageSettings& settings, RandomStream& random);

  JpegDecoder decoder_;
  Resampler resampler_;
};

class ImageDataset {
 public:
  explicit ImageDataset(ImageFolder folder, ImageSettings settings = {});

  std::int64_t size() const { return std::ssize(folder_.items); }
  std::int64_t num_classes() const { return std::ssize(folder_.classes); }
  const ImageFolder& folder() const { return folder_; }
  const ImageSettings& settings() const { return settings_; }
  std::int64_t label(std::int64_t index) const { return item(index).label; }
  std::size_t num_values() const {
    return static_cast<std::size_t>(3 * settings_.crop.crop_size) * settings_.crop.crop_size;
  }

  // Rows of interleaved R, G, B, num_values() in all; as bytes (0 to 255) or normalised.
  void load(std::int64_t index, std::uint32_t epoch, std::uint8_t* pixels_HWC) const;
  void load(std::int64_t index, std::uint32_t epoch, float* pixels_HWC) const;

 private:
  const ImageItem& item(std::int64_t index) const;
  template <typename Value>
  void load_into(std::int64_t index, std::uint32_t epoch, Value* pixels_HWC) const;
  void report_damage(const ImageItem& item, const std::string& warning) const;

  ImageFolder folder_;
  ImageSettings settings_;
  mutable std::atomic<int> num_damaged_ = 0;
};

struct ImageBatch {
  at::Tensor images;  // [B, 3, S, S], channels-last: normalised floats, or bytes (PixelKind)
  at::Tensor labels;  // [B], int64
};

enum class PixelKind {
  kNormalised,
  kBytes,  // a quarter of the memory and of the copy to a GPU; call normalise() there
};

// May be called from any thread. Errors name the file.
ImageBatch load_images(const ImageDataset& images, std::span<const std::int64_t> indices, std::uint32_t epoch,
                       PixelKind kind = PixelKind::kNormalised);

// Batches in order from number `begin`, each made by one of the threads. The dataset must outlive the loader; `batches`
// come from a sampler. At most options.num_ahead batches are in memory: a float batch of 512 takes 308 MB.
PrefetchLoader<ImageBatch> image_loader(const ImageDataset& images, std::vector<std::vector<std::int64_t>> batches,
                                        std::uint32_t epoch, PixelKind kind = PixelKind::kNormalised,
                                        std::int64_t begin = 0, PrefetchOptions options = {});

// Converts bytes [B, 3, S, S] on any device to what kNormalised gives, on the same device, in `type`.
at::Tensor normalise(const at::Tensor& bytes, const Normalization& normalization, at::ScalarType type = at::kFloat);

}  // namespace tessera
