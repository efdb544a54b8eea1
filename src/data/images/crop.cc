#include "data/images/crop.h"

#include <cmath>

namespace tessera {

namespace {

constexpr double kMinScale = 0.08;                              // share of the picture's area
constexpr double kMinRatio = 3.0 / 4.0, kMaxRatio = 4.0 / 3.0;  // width / height

// Python's round(): halves go to the even neighbour, as in the processor's default rounding.
int round_half_even(double value) {
  return static_cast<int>(std::nearbyint(value));
}

PixelBox random_box(const ImageSize& picture, RandomStream& random) {
  const double area = static_cast<double>(picture.width) * picture.height;
  const double log_min = std::log(kMinRatio), log_max = std::log(kMaxRatio);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target_area = area * random.uniform(kMinScale, 1.0);
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
  if (ratio < kMinRatio) box.height = round_half_even(box.width / kMinRatio);
  if (ratio > kMaxRatio) box.width = round_half_even(box.height * kMaxRatio);
  box.left = (picture.width - box.width) / 2;
  box.top = (picture.height - box.height) / 2;
  return box;
}

}  // namespace

View training_view(const ImageSize& picture, const CropSettings& settings, RandomStream& random) {
  View view;
  view.source = random_box(picture, random);
  view.size = {settings.crop_size, settings.crop_size};
  view.window = {0, 0, settings.crop_size, settings.crop_size};
  view.mirrored = random.uniform(0, 1) < 0.5;
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
