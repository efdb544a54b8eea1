// Functions of one number, free of branches and calls, so that the compiler vectorizes the loops around them.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <bit>
#include <cstdint>
#include <limits>

// On x86-64 one build serves every processor, which leaves half of most processors' vector width idle. A function
// marked with this is compiled once per width, with everything it calls inlined, and the loader picks one.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define TESSERA_VECTORISED __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4"), flatten))
#else
#define TESSERA_VECTORISED
#endif

namespace tessera::kernels {

// e^x within 2 units in the last place from -87.3 to 88; 0 below, e^88 above (never infinite); NaN stays NaN.
inline float exp_of(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves a whole number in the low bits
  constexpr float kLowest = -87.3f;      // below, the result would be subnormal
  const float bounded = x < kLowest ? kLowest : (x > 88.0f ? 88.0f : x);
  const float shifted = bounded * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const std::int32_t exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound) + 127;
  const float result = p * std::bit_cast<float>(static_cast<std::uint32_t>(exponent) << 23);
  return x < kLowest ? 0.0f : result;
}

// Calls f with a null pointer of the type: float, c10::BFloat16 or c10::Half.
template <typename F>
inline auto with_float_type(c10::ScalarType type, F f) {
  if (type == c10::kFloat) return f(static_cast<float*>(nullptr));
  if (type == c10::kBFloat16) return f(static_cast<c10::BFloat16*>(nullptr));
  return f(static_cast<c10::Half*>(nullptr));
}

// The largest of n numbers, in lanes. Each number is read twice and without a helper: only so does g++ use its vector
// instruction for it, which makes a softmax 1.4 times as fast.
template <std::int64_t kLanes, typename T>
inline float lane_max(const T* row, std::int64_t n) {
  float lanes[kLanes];
  for (auto& lane : lanes) lane = -std::numeric_limits<float>::infinity();
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = static_cast<float>(row[i + lane]) > lanes[lane] ? static_cast<float>(row[i + lane]) : lanes[lane];
    }
  }
  for (; i < n; ++i) lanes[0] = static_cast<float>(row[i]) > lanes[0] ? static_cast<float>(row[i]) : lanes[0];
  float result = lanes[0];
  for (const float lane : lanes) result = lane > result ? lane : result;
  return result;
}

// The sum of f(i) for i < n, in lanes whose order is the same on every processor: enough for two of the widest vectors.
template <typename F>
inline float lane_sum(std::int64_t n, F f) {
  constexpr std::int64_t kLanes = 32;
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane) lanes[lane] += f(i);
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

inline float sigmoid(float x) {
  return 1.0f / (1.0f + exp_of(-x));
}

}  // namespace tessera::kernels
