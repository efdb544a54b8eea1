#include "data/images/image_dataset.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <fmt/format.h>

#include <memory>
#include <new>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"

namespace tessera {

namespace {

constexpr int kMaxReports = 20;  // of damaged files: a folder full of them must not flood the log

ImageReader& reader_of_this_thread() {
  static thread_local ImageReader reader;
  return reader;
}

template <typename Value>
void load_all_into(const ImageDataset& images, std::span<const std::int64_t> indices, std::uint32_t epoch,
                   Value* pixels) {
  for (const std::int64_t index : indices) {
    images.load(index, epoch, pixels);
    pixels += images.num_values();
  }
}

}  // namespace

RgbView ImageReader::decode(std::string_view jpeg, const ImageSettings& settings, RandomStream& random) {
  const ImageSize picture = decoder_.open(jpeg);
  const View view =
      settings.augment ? training_view(picture, settings.crop, random) : validation_view(picture, settings.crop);
  return decoder_.decode(resampler_.prepare(view));
}

void ImageReader::read(std::string_view jpeg, const ImageSettings& settings, RandomStream random,
                       std::uint8_t* pixels_HWC) {
  resampler_.run(decode(jpeg, settings, random), pixels_HWC);
}

void ImageReader::read(std::string_view jpeg, const ImageSettings& settings, RandomStream random, float* pixels_HWC) {
  resampler_.run(decode(jpeg, settings, random), settings.normalization, pixels_HWC);
}

ImageDataset::ImageDataset(ImageFolder folder, ImageSettings settings)
    : folder_(std::move(folder)), settings_(std::move(settings)) {
  check(settings_.crop);
  for (const float deviation : settings_.normalization.deviation) {
    if (!(deviation > 0)) throw UsageError(fmt::format("the deviation is {} (expected: above 0)", deviation));
  }
}

const ImageItem& ImageDataset::item(std::int64_t index) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("no image {}: there are {}", index, size()));
  return folder_.items[static_cast<std::size_t>(index)];
}

template <typename Value>
void ImageDataset::load_into(std::int64_t index, std::uint32_t epoch, Value* pixels_HWC) const {
  const ImageItem& wanted = item(index);
  const std::filesystem::path path = folder_.root / wanted.path;
  const std::string jpeg = read_file(path);
  ImageReader& reader = reader_of_this_thread();
  try {
    reader.read(jpeg, settings_, RandomStream(settings_.seed, epoch, static_cast<std::uint64_t>(index)), pixels_HWC);
  } catch (const Error& error) {
    throw error.in_context(path.string());
  } catch (const std::bad_alloc&) {
    throw Error(path.string() + ": not enough memory for a picture of this size");
  }
  if (!reader.warning().empty()) report_damage(wanted, reader.warning());
}

void ImageDataset::load(std::int64_t index, std::uint32_t epoch, std::uint8_t* pixels_HWC) const {
  load_into(index, epoch, pixels_HWC);
}

void ImageDataset::load(std::int64_t index, std::uint32_t epoch, float* pixels_HWC) const {
  load_into(index, epoch, pixels_HWC);
}

void ImageDataset::report_damage(const ImageItem& damaged, const std::string& warning) const {
  const int before = num_damaged_++;
  if (before >= kMaxReports) return;
  log_warn("{} is damaged; the part that can be read is used: {}{}", (folder_.root / damaged.path).string(), warning,
           before + 1 == kMaxReports ? " (further damaged files are not reported)" : "");
}

ImageBatch load_images(const ImageDataset& images, std::span<const std::int64_t> indices, std::uint32_t epoch,
                       PixelKind kind) {
  const std::int64_t size = images.settings().crop.crop_size;
  const at::ScalarType type = kind == PixelKind::kBytes ? at::kByte : at::kFloat;
  ImageBatch batch;
  // Rows of interleaved channels are the channels-last layout.
  batch.images =
      at::empty({std::ssize(indices), 3, size, size}, at::TensorOptions(type), at::MemoryFormat::ChannelsLast);
  batch.labels = at::empty({std::ssize(indices)}, at::kLong);
  std::int64_t* label = batch.labels.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t index : indices) *label++ = images.label(index);
  if (kind == PixelKind::kBytes) {
    load_all_into(images, indices, epoch, batch.images.mutable_data_ptr<std::uint8_t>());
  } else {
    load_all_into(images, indices, epoch, batch.images.mutable_data_ptr<float>());
  }
  return batch;
}

PrefetchLoader<ImageBatch> image_loader(const ImageDataset& images, std::vector<std::vector<std::int64_t>> batches,
                                        std::uint32_t epoch, PixelKind kind, std::int64_t begin,
                                        PrefetchOptions options) {
  const std::int64_t end = std::ssize(batches);
  auto shared = std::make_shared<const std::vector<std::vector<std::int64_t>>>(std::move(batches));
  return PrefetchLoader<ImageBatch>(
      begin, end,
      [&images, shared, epoch, kind](std::int64_t number) {
        return load_images(images, (*shared)[static_cast<std::size_t>(number)], epoch, kind);
      },
      std::move(options));
}

at::Tensor normalise(const at::Tensor& bytes, const Normalization& normalization, at::ScalarType type) {
  if (bytes.scalar_type() != at::kByte || bytes.dim() != 4 || bytes.size(1) != 3) {
    throw Error(fmt::format("expected bytes [batch, 3, height, width], found {} of {} dimensions",
                            c10::toString(bytes.scalar_type()), bytes.dim()));
  }
  // Built on the device: copying three numbers there would make the host wait for all queued work.
  const auto per_channel = [&](auto value_of) {
    std::vector<at::Tensor> values;
    for (std::size_t c = 0; c < 3; ++c) {
      values.push_back(at::full({1, 1, 1, 1}, value_of(c), bytes.options().dtype(at::kFloat)));
    }
    return at::cat(values, 1);
  };
  // In float32; the second operation rounds to `type` as it writes.
  const at::Tensor scaled = at::mul(bytes, per_channel([&](std::size_t c) { return normalization.scale(c); }));
  at::Tensor result = at::empty_like(bytes, bytes.options().dtype(type));
  return at::add_out(result, scaled, per_channel([&](std::size_t c) { return normalization.offset(c); }));
}

}  // namespace tessera
