// Which part of a picture is shown, and at what size: torchvision's RandomResizedCrop + RandomHorizontalFlip for
// training, Resize + CenterCrop for validation, as pure geometry.
#pragma once

#include <array>
#include <cstdint>

#include "data/images/jpeg.h"

namespace tessera {

namespace internal {

// The four numbers of one counter under one key.
inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

}  // namespace internal

// Random numbers that belong to one item of one epoch: Philox4x32-10 (Salmon et al., 2011) computes the n-th number
// from the seed, the epoch and the item alone. Any thread that draws them, in any order, gets the same numbers.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint32_t epoch, std::uint64_t item)
      : key_{low(seed), high(seed)}, counter_{0, epoch, low(item), high(item)} {}

  std::uint32_t next_word() {
    if (counter_[0] % 4 == 0) {
      block_ = internal::philox4x32({counter_[0] / 4, counter_[1], counter_[2], counter_[3]}, key_);
    }
    return block_[counter_[0]++ % 4];
  }
  // In [low, high).
  double uniform(double from, double to) { return from + (to - from) * next_word() * 0x1p-32; }
  // 0 ... count - 1 (count at most 2^31), equally likely to within 2^-32.
  int below(int count) {
    return static_cast<int>((std::uint64_t{next_word()} * static_cast<std::uint64_t>(count)) >> 32);
  }

 private:
  static std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
  static std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;  // numbers drawn, epoch, item
  std::array<std::uint32_t, 4> block_{};
};

struct CropSettings {
  int crop_size = 224;  // side length in pixels that a model sees
  int resize = 256;     // validation: the shorter side, before the centre crop
};

// `source`, a box of the picture, is resized to `size`; the part of it in `window` is shown, mirrored or not.
struct View {
  PixelBox source;
  ImageSize size;
  PixelBox window;
  bool mirrored = false;
};

// torchvision's defaults: 8 to 100 % of the picture's area at a ratio from 3/4 to 4/3, mirrored half of the time. Draws
// the same values from the stream as torchvision, from the same distributions: ten tries, then the largest
// centred box of an allowed ratio.
View training_view(const ImageSize& picture, const CropSettings& settings, RandomStream& random);
View validation_view(const ImageSize& picture, const CropSettings& settings);

}  // namespace tessera
