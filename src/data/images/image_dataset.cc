#include "data/images/image_dataset.h"

#include <fmt/format.h>

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

}  // namespace tessera
