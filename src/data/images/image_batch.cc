#include "data/images/image_batch.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "core/error.h"

namespace tessera {

namespace {

template <typename Value>
void load_into(const ImageDataset& images, std::span<const std::int64_t> indices, std::uint32_t epoch, Value* pixels) {
  for (const std::int64_t index : indices) {
    images.load(index, epoch, pixels);
    pixels += images.num_values();
  }
}

}  // namespace

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
    load_into(images, indices, epoch, batch.images.mutable_data_ptr<std::uint8_t>());
  } else {
    load_into(images, indices, epoch, batch.images.mutable_data_ptr<float>());
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
