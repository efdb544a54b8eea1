#include "data/images/crop.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"

namespace tessera {

namespace {

// Python's round(): halves go to the even neighbour, as in the processor's default rounding.
int round_half_even(double value) {
  return static_cast<int>(std::nearbyint(value));
}

PixelBox random_box(const ImageSize& picture, const CropSettings& settings, RandomStream& random) {
  const double area = static_cast<double>(picture.width) * picture.height;
  const double log_min = std::log(settings.min_ratio), log_max = std::log(settings.max_ratio);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target_area = area * random.uniform(settings.min_scale, settings.max_scale);
    const double ratio = std::exp(random.uniform(log_min, log_max));
    const int width = round_half_even(std::sqrt(target_area * ratio));
    const int height = round_half_even(std::sqrt(target_area / ratio));
    if (width > 0 && width <= picture.width && height > 0 && height <= picture.height) {
      const int top = random.below(picture.height - height + 1);
      const int left = random.below(picture.width - width + 1);
      return {left, top, width, height};
    }
  }
  PixelBox box{0, 0, picture.width, picture.height};
  const double ratio = static_cast<double>(picture.width) / picture.height;
  if (ratio < settings.min_ratio) box.height = round_half_even(box.width / settings.min_ratio);
  if (ratio > settings.max_ratio) box.width = round_half_even(box.height * settings.max_ratio);
  box.left = (picture.width - box.width) / 2;
  box.top = (picture.height - box.height) / 2;
  return box;
}

}  // namespace

void check(const CropSettings& settings) {
  const auto refuse = [](const char* name, double value, const char* allowed) {
    throw UsageError(fmt::format("{} is {} (allowed: {})", name, value, allowed));
  };
  if (settings.crop_size < 1 || settings.crop_size > 4096) refuse("crop size", settings.crop_size, "1 to 4096");
  if (settings.resize < settings.crop_size || settings.resize > 8192) {
    refuse("resize", settings.resize, "the crop size to 8192");
  }
  if (!(settings.min_scale > 0 && settings.min_scale <= settings.max_scale && settings.max_scale <= 1)) {
    refuse("scale", settings.min_scale, "above 0 and at most the largest scale, which is at most 1");
  }
  if (!(settings.min_ratio > 0 && settings.min_ratio <= settings.max_ratio && settings.max_ratio <= 1000)) {
    refuse("ratio", settings.min_ratio, "above 0 and at most the largest ratio, which is at most 1000");
  }
  if (!(settings.flip_probability >= 0 && settings.flip_probability <= 1)) {
    refuse("flip probability", settings.flip_probability, "0 to 1");
  }
}

View training_view(const ImageSize& picture, const CropSettings& settings, RandomStream& random) {
  View view;
  view.source = random_box(picture, settings, random);
  view.size = {settings.crop_size, settings.crop_size};
  view.window = {0, 0, settings.crop_size, settings.crop_size};
  view.mirrored = random.uniform(0, 1) < settings.flip_probability;
  return view;
}

View validation_view(const ImageSize& picture, const CropSettings& settings) {
  View view;
  view.source = {0, 0, picture.width, picture.height};
  const auto longer = [&](int longer_side, int shorter_side) {
    return static_cast<int>(static_cast<double>(std::int64_t{settings.resize} * longer_side) / shorter_side);
  };
  const bool is_upright = picture.width <= picture.height;
  view.size.width = is_upright ? settings.resize : longer(picture.width, picture.height);
  view.size.height = is_upright ? longer(picture.height, picture.width) : settings.resize;
  view.window = {round_half_even((view.size.width - settings.crop_size) / 2.0),
                 round_half_even((view.size.height - settings.crop_size) / 2.0), settings.crop_size,
                 settings.crop_size};
  return view;
}

}  // namespace tessera
