#include "data/images/image_dataset.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <fmt/format.h>

#include <new>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "data/images/resample.h"

namespace tessera {

namespace {

constexpr int kMaxReports = 20;  // of damaged files: a folder full of them must not flood the log

struct Buffers {
  JpegDecoder decoder;
  Resampler resampler;
};

}  // namespace

ImageDataset::ImageDataset(ImageFolder folder, ImageSettings settings)
    : folder_(std::move(folder)), settings_(std::move(settings)) {
  const int crop_size = settings_.crop.crop_size;
  if (crop_size < 1 || crop_size > 4096) {
    throw UsageError(fmt::format("crop size is {} (allowed: 1 to 4096)", crop_size));
  }
}

const ImageItem& ImageDataset::item(std::int64_t index) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("no image {}: there are {}", index, size()));
  return folder_.items[static_cast<std::size_t>(index)];
}

void ImageDataset::load(std::int64_t index, std::uint32_t epoch, std::uint8_t* pixels_HWC) const {
  const ImageItem& wanted = item(index);
  const std::filesystem::path path = folder_.root / wanted.path;
  const std::string jpeg = read_file(path);
  static thread_local Buffers buffers;
  auto& [decoder, resampler] = buffers;
  try {
    const ImageSize picture = decoder.open(jpeg);
    RandomStream random(settings_.seed, epoch, static_cast<std::uint64_t>(index));
    const View view =
        settings_.augment ? training_view(picture, settings_.crop, random) : validation_view(picture, settings_.crop);
    resampler.run(decoder.decode(resampler.prepare(view)), pixels_HWC);
  } catch (const Error& error) {
    throw error.in_context(path.string());
  } catch (const std::bad_alloc&) {
    throw Error(path.string() + ": not enough memory for a picture of this size");
  }
  if (!decoder.warning().empty()) report_damage(wanted, decoder.warning());
}

void ImageDataset::report_damage(const ImageItem& damaged, const std::string& warning) const {
  const int before = num_damaged_++;
  if (before >= kMaxReports) return;
  log_warn("{} is damaged; the part that can be read is used: {}{}", (folder_.root / damaged.path).string(), warning,
           before + 1 == kMaxReports ? " (further damaged files are not reported)" : "");
}

ImageBatch load_images(const ImageDataset& images, std::span<const std::int64_t> indices, std::uint32_t epoch) {
  const std::int64_t size = images.settings().crop.crop_size;
  // Rows of interleaved channels are the channels-last layout.
  ImageBatch batch{at::empty({std::ssize(indices), 3, size, size}, at::kByte, at::MemoryFormat::ChannelsLast),
                   at::empty({std::ssize(indices)}, at::kLong)};
  std::uint8_t* pixels = batch.images.mutable_data_ptr<std::uint8_t>();
  std::int64_t* label = batch.labels.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t index : indices) {
    *label++ = images.label(index);
    images.load(index, epoch, pixels);
    pixels += images.num_values();
  }
  return batch;
}

namespace {

at::Tensor normalise_by_operators(const at::Tensor& bytes, at::ScalarType type) {
  // Rows of pixels, [B H, W C]: the channels alone would be loops of three numbers.
  const at::Tensor rows = bytes.permute({0, 2, 3, 1}).contiguous().view({-1, bytes.size(3) * 3});
  // Built on the device: copying three numbers there would make the host wait for all queued work.
  const auto per_channel = [&](auto value_of) {
    std::vector<at::Tensor> values;
    for (std::size_t c = 0; c < 3; ++c) {
      const double mean = kPixelMean[c], deviation = kPixelDeviation[c];
      const auto value = static_cast<float>(value_of(mean, deviation));
      values.push_back(at::full({1}, value, bytes.options().dtype(at::kFloat)));
    }
    return at::cat(values).repeat({bytes.size(3)});
  };
  // In float32; the second operation rounds to `type` as it writes.
  const at::Tensor scaled =
      at::mul(rows, per_channel([](double, double deviation) { return 1.0 / (255.0 * deviation); }));
  at::Tensor result = at::empty_like(rows, rows.options().dtype(type));
  at::add_out(result, scaled, per_channel([](double mean, double deviation) { return -mean / deviation; }));
  return result.view({bytes.size(0), bytes.size(2), bytes.size(3), 3}).permute({0, 3, 1, 2});
}

bool can_be_overwritten(const at::Tensor& earlier, const at::Tensor& bytes, at::ScalarType type) {
  return earlier.defined() && earlier.use_count() == 1 && earlier.storage().use_count() == 1 &&
         earlier.scalar_type() == type && earlier.sizes() == bytes.sizes() &&
         earlier.is_contiguous(at::MemoryFormat::ChannelsLast);
}

// A byte has 256 values in each channel: on a CPU looking them up takes a tenth of the time.
at::Tensor normalise_by_table(const at::Tensor& bytes, at::ScalarType type, at::Tensor&& earlier) {
  const at::Tensor every_byte = at::arange(256, at::kByte).view({256, 1, 1, 1}).expand({256, 3, 1, 1});
  const at::Tensor table = normalise_by_operators(every_byte, type);
  const at::Tensor in = bytes.contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor result = can_be_overwritten(earlier, bytes, type)
                          ? std::move(earlier)
                          : at::empty(bytes.sizes(), bytes.options().dtype(type), at::MemoryFormat::ChannelsLast);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "normalise", [&] {
    const std::uint8_t* from = in.const_data_ptr<std::uint8_t>();
    const scalar_t* values = table.const_data_ptr<scalar_t>();
    scalar_t* to = result.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, bytes.numel() / 3, 16'384, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 3 * begin; i < 3 * end; i += 3) {
        for (std::int64_t c = 0; c < 3; ++c) to[i + c] = values[3 * from[i + c] + c];
      }
    });
  });
  return result;
}

}  // namespace

at::Tensor normalise(const at::Tensor& bytes, at::ScalarType type, at::Tensor&& earlier) {
  if (bytes.scalar_type() != at::kByte || bytes.dim() != 4 || bytes.size(1) != 3) {
    throw Error(fmt::format("expected bytes [batch, 3, height, width], found {} of {} dimensions",
                            c10::toString(bytes.scalar_type()), bytes.dim()));
  }
  return bytes.is_cpu() ? normalise_by_table(bytes, type, std::move(earlier)) : normalise_by_operators(bytes, type);
}

}  // namespace tessera
