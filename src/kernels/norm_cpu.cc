#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>

#include "kernels/cpu_rows.h"
#include "kernels/flat_buffers.h"
#include "kernels/half_numbers.h"
#include "kernels/parallel.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

// 16 lanes, the same on every processor, summed in order.
constexpr std::int64_t kLanes = 16;
static_assert(kNormBlock % kLanes == 0);

#if defined(__aarch64__)

// By hand: for the loop below the compiler keeps the sums in memory.
inline void add_squares(const float* values, std::int64_t n, double* lanes) {
  float64x2_t sums[kLanes / 2] = {};
  for (std::int64_t i = 0; i < n; i += kLanes) {
    for (std::int64_t four = 0; four < kLanes / 4; ++four) {
      const float32x4_t x = vld1q_f32(values + i + 4 * four);
      const float64x2_t low = vcvt_f64_f32(vget_low_f32(x)), high = vcvt_high_f64_f32(x);
      sums[2 * four] = vfmaq_f64(sums[2 * four], low, low);
      sums[2 * four + 1] = vfmaq_f64(sums[2 * four + 1], high, high);
    }
  }
  for (std::int64_t pair = 0; pair < kLanes / 2; ++pair) vst1q_f64(lanes + 2 * pair, sums[pair]);
}

#else

inline void add_squares(const float* values, std::int64_t n, double* lanes) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double x = static_cast<double>(values[i + lane]);
      lanes[lane] += x * x;
    }
  }
}

#endif

inline double square_sum(const float* values, std::int64_t n) {
  double lanes[kLanes] = {};
  const std::int64_t whole = n / kLanes * kLanes;
  add_squares(values, whole, lanes);
  if (whole < n) {
    float padded[kLanes] = {};
    double rest[kLanes] = {};
    std::copy_n(values + whole, n - whole, padded);
    add_squares(padded, kLanes, rest);
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += rest[lane];
  }
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

TESSERA_VECTORISED
void square_sums_part(c10::ScalarType type, const void* values, std::int64_t numel, double* sums, std::int64_t first,
                      std::int64_t last) {
  float as_float[kNormBlock];
  for (std::int64_t block = first; block < last; ++block) {
    const std::int64_t begin = block * kNormBlock, n = std::min(kNormBlock, numel - begin);
    const float* numbers = as_float;
    if (type == c10::kFloat) {
      numbers = static_cast<const float*>(values) + begin;
    } else if (type == c10::kBFloat16) {
      const auto* own = static_cast<const c10::BFloat16*>(values) + begin;
      for (std::int64_t i = 0; i < n; ++i) as_float[i] = static_cast<float>(own[i]);
    } else {
      half_to_float(static_cast<const c10::Half*>(values) + begin, as_float, n);
    }
    sums[block] = square_sum(numbers, n);
  }
}

}  // namespace

void block_square_sums_cpu(c10::ScalarType type, const void* values, std::int64_t numel, double* sums) {
  constexpr std::int64_t kBlocksOfAThread = 32;
  parallel_for(0, (numel + kNormBlock - 1) / kNormBlock, kBlocksOfAThread, [&](std::int64_t first, std::int64_t last) {
    square_sums_part(type, values, numel, sums, first, last);
  });
}

}  // namespace tessera::kernels
