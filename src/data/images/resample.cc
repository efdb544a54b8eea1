#include "data/images/resample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"

// Where one build serves every x86-64 processor, the loops are also compiled for wide vectors and the loader picks. All
// arithmetic is on integers: the bits do not depend on it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define TESSERA_FOR_EACH_VECTOR_WIDTH __attribute__((target_clones("default", "avx2"), flatten))
#else
#define TESSERA_FOR_EACH_VECTOR_WIDTH
#endif

namespace tessera {

namespace {

constexpr int kFractionBits = 22;  // 8 bits of pixel, 2 to spare
constexpr std::uint32_t kHalf = 1u << (kFractionBits - 1);
constexpr int kChannels = 3;
constexpr int kPixelsAtOnce = 4;

using Bytes16 __attribute__((vector_size(16))) = std::uint8_t;
using Words4 __attribute__((vector_size(16))) = std::uint32_t;

template <typename Vector>
Vector load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

template <typename Vector>
void store(const Vector& vector, void* to) {
  std::memcpy(to, &vector, sizeof vector);
}

#if defined(__clang__)
#define TESSERA_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define TESSERA_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Bytes16{__VA_ARGS__})
#endif

// Bytes R G B R G B ... to one vector of four words per pixel (the fourth is 0). Reads up to 16 bytes past the end, and
// writes whole groups of four pixels.
inline void widen(const std::uint8_t* rgb, int num_pixels, std::uint32_t* words) {
  const Bytes16 zero{};
  for (int x = 0; x < num_pixels; x += kPixelsAtOnce, rgb += 12, words += 16) {
    const Bytes16 bytes = load<Bytes16>(rgb);
    store(TESSERA_SHUFFLE(bytes, zero, 0, 16, 16, 16, 1, 16, 16, 16, 2, 16, 16, 16, 16, 16, 16, 16), words);
    store(TESSERA_SHUFFLE(bytes, zero, 3, 16, 16, 16, 4, 16, 16, 16, 5, 16, 16, 16, 16, 16, 16, 16), words + 4);
    store(TESSERA_SHUFFLE(bytes, zero, 6, 16, 16, 16, 7, 16, 16, 16, 8, 16, 16, 16, 16, 16, 16, 16), words + 8);
    store(TESSERA_SHUFFLE(bytes, zero, 9, 16, 16, 16, 10, 16, 16, 16, 11, 16, 16, 16, 16, 16, 16, 16), words + 12);
  }
}

// kTaps 0: as many as num_taps says.
template <int kTaps>
inline Words4 weighted_sum(const std::uint32_t* words, const std::uint32_t* weights, int num_taps) {
  Words4 sum = Words4{} + kHalf;
  const int n = kTaps == 0 ? num_taps : kTaps;
  for (int t = 0; t < n; ++t) sum += load<Words4>(words + 4 * t) * weights[t];
  return sum >> kFractionBits;
}

// Four pixels at a time; the last ones overwrite what follows the row's end (the row has room).
template <int kTaps>
inline void resample_row(const std::uint32_t* words, const ResamplePlan& plan, std::uint8_t* rgb) {
  const int n = kTaps == 0 ? plan.num_taps : kTaps;
  const int num_outputs = static_cast<int>(plan.begin.size());
  const auto pixel = [&](int x) {
    return weighted_sum<kTaps>(words + 4 * plan.begin[static_cast<std::size_t>(x)],
                               plan.weights.data() + std::ptrdiff_t{x} * n, n);
  };
  int x = 0;
  for (; x + kPixelsAtOnce <= num_outputs; x += kPixelsAtOnce, rgb += 12) {
    // Lane c of `lanes`: channel c of the four pixels, one byte each.
    const Words4 lanes = pixel(x) | pixel(x + 1) << 8 | pixel(x + 2) << 16 | pixel(x + 3) << 24;
    const Bytes16 bytes = load<Bytes16>(&lanes);
    store(TESSERA_SHUFFLE(bytes, bytes, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, 12, 13, 14, 15), rgb);
  }
  for (; x < num_outputs; ++x, rgb += kChannels) {
    const Words4 value = pixel(x);
    for (int channel = 0; channel < kChannels; ++channel) rgb[channel] = static_cast<std::uint8_t>(value[channel]);
  }
}

TESSERA_FOR_EACH_VECTOR_WIDTH
void resample_rows_of(const RgbView& pixels, const ResamplePlan& plan, std::uint32_t* wide, std::size_t row_bytes,
                      std::uint8_t* narrow) {
  for (int y = 0; y < pixels.height; ++y) {
    widen(pixels.pixels + y * pixels.row_bytes, pixels.width, wide);
    std::uint8_t* row = narrow + row_bytes * static_cast<std::size_t>(y);
    if (plan.num_taps == 2) {
      resample_row<2>(wide, plan, row);
    } else if (plan.num_taps == 3) {
      resample_row<3>(wide, plan, row);
    } else {
      resample_row<0>(wide, plan, row);
    }
  }
}

inline void combine_two(const std::uint8_t* __restrict a, const std::uint8_t* __restrict b, std::uint32_t weight_a,
                        std::uint32_t weight_b, int n, std::uint8_t* __restrict out) {
  for (int i = 0; i < n; ++i) {
    out[i] = static_cast<std::uint8_t>((kHalf + a[i] * weight_a + b[i] * weight_b) >> kFractionBits);
  }
}

inline void add_two(const std::uint8_t* __restrict a, const std::uint8_t* __restrict b, std::uint32_t weight_a,
                    std::uint32_t weight_b, int n, std::uint32_t* __restrict sums) {
  for (int i = 0; i < n; ++i) sums[i] += a[i] * weight_a + b[i] * weight_b;
}

inline void to_bytes(const std::uint32_t* __restrict sums, int n, std::uint8_t* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] = static_cast<std::uint8_t>(sums[i] >> kFractionBits);
}

// Rows first, first + 1, ... of `narrow`; `last` is its last row: weights after it are 0.
TESSERA_FOR_EACH_VECTOR_WIDTH
void combine_rows(const std::uint8_t* narrow, std::size_t row_bytes, int first, int last, const std::uint32_t* weights,
                  int num_taps, int n, std::uint32_t* sums, std::uint8_t* out) {
  const auto row = [&](int t) { return narrow + row_bytes * static_cast<std::size_t>(std::min(first + t, last)); };
  const auto weight = [&](int t) { return t < num_taps ? weights[t] : 0; };
  if (num_taps <= 2) return combine_two(row(0), row(1), weight(0), weight(1), n, out);
  std::fill_n(sums, n, kHalf);
  for (int t = 0; t < num_taps; t += 2) add_two(row(t), row(t + 1), weight(t), weight(t + 1), n, sums);
  to_bytes(sums, n, out);
}

}  // namespace

// The arithmetic is Pillow's, in double and in the same order, so that every weight is equal to the last bit.
ResamplePlan plan_resample(int in_size, int out_size, int out_first, int num_outputs, bool reversed) {
  const double scale = static_cast<double>(in_size) / out_size;
  const double support = std::max(scale, 1.0);  // of the triangle: one source pixel, or one output pixel if larger
  struct Range {
    int begin, count;
    double centre;
  };
  std::vector<Range> ranges;
  ResamplePlan plan;
  int end = 0;
  plan.first = in_size;
  for (int i = 0; i < num_outputs; ++i) {
    const double centre = (out_first + (reversed ? num_outputs - 1 - i : i) + 0.5) * scale;
    const int begin = std::max(0, static_cast<int>(centre - support + 0.5));
    const int behind = std::min(in_size, static_cast<int>(centre + support + 0.5));
    ranges.push_back({begin, behind - begin, centre});
    plan.first = std::min(plan.first, begin);
    end = std::max(end, behind);
    plan.num_taps = std::max(plan.num_taps, behind - begin);
  }
  plan.size = end - plan.first;

  const std::size_t num_taps = static_cast<std::size_t>(plan.num_taps);
  plan.weights.assign(num_taps * static_cast<std::size_t>(num_outputs), 0);
  std::vector<double> triangle(num_taps);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto& [begin, count, centre] = ranges[i];
    double total = 0;
    for (int t = 0; t < count; ++t) {
      const double distance = std::fabs((t + begin - centre + 0.5) * (1.0 / support));
      triangle[static_cast<std::size_t>(t)] = distance < 1.0 ? 1.0 - distance : 0.0;
      total += triangle[static_cast<std::size_t>(t)];
    }
    plan.begin.push_back(begin - plan.first);
    for (std::size_t t = 0; t < static_cast<std::size_t>(count); ++t) {
      const double weight = total != 0.0 ? triangle[t] / total : triangle[t];
      plan.weights[i * num_taps + t] = static_cast<std::uint32_t>(0.5 + weight * (1 << kFractionBits));
    }
  }
  return plan;
}

PixelBox Resampler::prepare(const View& view) {
  columns_ = plan_resample(view.source.width, view.size.width, view.window.left, view.window.width, view.mirrored);
  rows_ = plan_resample(view.source.height, view.size.height, view.window.top, view.window.height, false);
  return {view.source.left + columns_.first, view.source.top + rows_.first, columns_.size, rows_.size};
}

void Resampler::resample_columns(const RgbView& pixels) {
  if (pixels.width != columns_.size || pixels.height != rows_.size) {
    throw Error(fmt::format("the resampler got {}x{} pixels but asked for {}x{}", pixels.width, pixels.height,
                            columns_.size, rows_.size));
  }
  // After the row: room that taps of weight 0 read and widen() overwrites.
  wide_.resize(static_cast<std::size_t>(columns_.size + columns_.num_taps + kPixelsAtOnce) * 4);
  row_bytes_ = columns_.begin.size() * kChannels;
  narrow_.resize(row_bytes_ * static_cast<std::size_t>(rows_.size) + sizeof(Bytes16));
  resample_rows_of(pixels, columns_, wide_.data(), row_bytes_, narrow_.data());
  sums_.resize(row_bytes_);
}

void Resampler::run(const RgbView& pixels, std::uint8_t* out_HWC) {
  resample_columns(pixels);
  for (std::size_t y = 0; y < rows_.begin.size(); ++y) {
    const std::uint32_t* weights = rows_.weights.data() + y * static_cast<std::size_t>(rows_.num_taps);
    combine_rows(narrow_.data(), row_bytes_, rows_.begin[y], rows_.size - 1, weights, rows_.num_taps,
                 static_cast<int>(row_bytes_), sums_.data(), out_HWC + y * row_bytes_);
  }
}

}  // namespace tessera
