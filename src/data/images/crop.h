// Which part of a picture is shown, and at what size: torchvision's RandomResizedCrop + RandomHorizontalFlip for
// training, Resize + CenterCrop for validation, as pure geometry.
#pragma once

#include "data/images/jpeg.h"
#include "data/images/random_stream.h"

namespace tessera {

struct CropSettings {
  int crop_size = 224;      // side length in pixels that a model sees
  int resize = 256;         // validation: the shorter side, before the centre crop
  double min_scale = 0.08;  // training: share of the picture's area
  double max_scale = 1.0;
  double min_ratio = 3.0 / 4.0;  // training: width / height
  double max_ratio = 4.0 / 3.0;
  double flip_probability = 0.5;
};

// `source`, a box of the picture, is resized to `size`; the part of it in `window` is shown, mirrored or not.
struct View {
  PixelBox source;
  ImageSize size;
  PixelBox window;
  bool mirrored = false;
};

// Throws UsageError naming the invalid value.
void check(const CropSettings& settings);

// Draws the same values from the stream as torchvision, from the same distributions: ten tries, then the largest
// centred box of an allowed ratio.
View training_view(const ImageSize& picture, const CropSettings& settings, RandomStream& random);
View validation_view(const ImageSize& picture, const CropSettings& settings);

}  // namespace tessera
