// Resizing as Pillow resizes RGB with BILINEAR (which smooths when it shrinks), bit for bit: the same weights in 22-bit
// fixed point, columns first, rounded to bytes, then rows. (Since version 13 Pillow does rows first where the height
// shrinks more than the width; there bytes differ by at most one.) Only the window that is shown is computed, and only
// from the pixels it needs; mirroring is free.
//
// A Resampler is for one thread and is meant to be kept: its buffers are reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/images/crop.h"
#include "data/images/jpeg.h"

namespace tessera {

// One direction of a resize: output o is the sum over t of source[begin[o] + t] * weights[o * num_taps + t] / 2^22.
struct ResamplePlan {
  int first = 0;  // needs source pixels first, ... first + size - 1; begin[] counts from first
  int size = 0;
  int num_taps = 0;  // outputs that need fewer end in weights of 0, which may reach past `size`
  std::vector<int> begin;
  std::vector<std::uint32_t> weights;
};

// Outputs out_first, ... out_first + num_outputs - 1 of a line of in_size pixels resized to out_size; in reverse order
// if `reversed`.
ResamplePlan plan_resample(int in_size, int out_size, int out_first, int num_outputs, bool reversed);

class Resampler {
 public:
  // Step 1: which part of the picture is needed. The view must fit the picture.
  PixelBox prepare(const View& view);
  // Step 2: `pixels` is that box; out has window height x window width x 3 values.
  void run(const RgbView& pixels, std::uint8_t* out_HWC);

 private:
  void resample_columns(const RgbView& pixels);

  ResamplePlan columns_, rows_;
  std::vector<std::uint32_t> wide_;   // one source row, four lanes per pixel
  std::vector<std::uint8_t> narrow_;  // [rows needed][row_bytes_]: columns done, rows still to do
  std::size_t row_bytes_ = 0;
  std::vector<std::uint32_t> sums_;
};

}  // namespace tessera
