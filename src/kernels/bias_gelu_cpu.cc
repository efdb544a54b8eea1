#include <algorithm>
#include <type_traits>

#include "kernels/cpu_rows.h"
#include "kernels/parallel.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

constexpr float kSqrt2OverPi = 0.79788456f;
constexpr float kCubic = 0.044715f;

// (1 + tanh(u)) / 2 is the sigmoid of 2 u: one exponential, and no cancellation where tanh is near -1.
inline float gelu(float y) {
  return y * sigmoid(2.0f * kSqrt2OverPi * y * (1.0f + kCubic * y * y));
}

inline float gelu_derivative(float y) {
  const float s = sigmoid(2.0f * kSqrt2OverPi * y * (1.0f + kCubic * y * y));
  return s + y * s * (1.0f - s) * (2.0f * kSqrt2OverPi) * (1.0f + 3.0f * kCubic * y * y);
}

template <typename T>
inline void forward_row(const T* x, const T* bias, T* out, std::int64_t C) {
#pragma GCC ivdep
  for (std::int64_t c = 0; c < C; ++c) {
    out[c] = static_cast<T>(gelu(static_cast<float>(x[c]) + static_cast<float>(bias[c])));
  }
}

template <typename T>
inline void forward_rows(const void* x, const void* bias, void* out, std::int64_t first, std::int64_t last,
                         std::int64_t C) {
  for (std::int64_t row = first; row < last; ++row) {
    forward_row(static_cast<const T*>(x) + row * C, static_cast<const T*>(bias), static_cast<T*>(out) + row * C, C);
  }
}

// One stripe of columns over all rows, so that one thread owns its share of grad_bias. Sums of kRowBlock rows are added
// to the total: the error of a sum over thousands of rows stays that of a few dozen.
constexpr std::int64_t kStripe = 256;
constexpr std::int64_t kRowBlock = 64;

template <typename T>
inline void backward_row(const T* grad, const T* x, const T* bias, T* grad_x, float* sum, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t c = 0; c < n; ++c) {
    const float y = static_cast<float>(x[c]) + static_cast<float>(bias[c]);
    const float d = static_cast<float>(grad[c]) * gelu_derivative(y);
    grad_x[c] = static_cast<T>(d);
    sum[c] += d;
  }
}

template <typename T>
inline void backward_stripe(const void* grad, const void* x, const void* bias, void* grad_x, void* grad_bias,
                            std::int64_t num_rows, std::int64_t C, std::int64_t begin) {
  const std::int64_t n = std::min(kStripe, C - begin);
  float total[kStripe] = {};
  for (std::int64_t block = 0; block < num_rows; block += kRowBlock) {
    float sum[kStripe] = {};
    for (std::int64_t row = block; row < std::min(num_rows, block + kRowBlock); ++row) {
      const std::int64_t at = row * C + begin;
      backward_row(static_cast<const T*>(grad) + at, static_cast<const T*>(x) + at, static_cast<const T*>(bias) + begin,
                   static_cast<T*>(grad_x) + at, sum, n);
    }
    for (std::int64_t c = 0; c < n; ++c) total[c] += sum[c];
  }
  for (std::int64_t c = 0; c < n; ++c) static_cast<T*>(grad_bias)[begin + c] = static_cast<T>(total[c]);
}

TESSERA_VECTORISED
void forward_part(c10::ScalarType type, const void* x, const void* bias, void* out, std::int64_t first,
                  std::int64_t last, std::int64_t C) {
  with_float_type(
      type, [&](auto* null) { forward_rows<std::remove_pointer_t<decltype(null)>>(x, bias, out, first, last, C); });
}

TESSERA_VECTORISED
void backward_part(c10::ScalarType type, const void* grad, const void* x, const void* bias, void* grad_x,
                   void* grad_bias, std::int64_t num_rows, std::int64_t C, std::int64_t begin) {
  switch (type) {  // not with_float_type(): captured by reference, these made float16 1.5 times as slow
    case c10::kFloat:
      return backward_stripe<float>(grad, x, bias, grad_x, grad_bias, num_rows, C, begin);
    case c10::kBFloat16:
      return backward_stripe<c10::BFloat16>(grad, x, bias, grad_x, grad_bias, num_rows, C, begin);
    default:
      return backward_stripe<c10::Half>(grad, x, bias, grad_x, grad_bias, num_rows, C, begin);
  }
}

}  // namespace

void bias_gelu_forward_cpu(c10::ScalarType type, const void* x, const void* bias, void* out, std::int64_t num_rows,
                           std::int64_t C) {
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, C));
  parallel_for(0, num_rows, grain,
               [&](std::int64_t first, std::int64_t last) { forward_part(type, x, bias, out, first, last, C); });
}

void bias_gelu_backward_cpu(c10::ScalarType type, const void* grad, const void* x, const void* bias, void* grad_x,
                            void* grad_bias, std::int64_t num_rows, std::int64_t C) {
  parallel_for(0, (C + kStripe - 1) / kStripe, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t stripe = first; stripe < last; ++stripe) {
      backward_part(type, grad, x, bias, grad_x, grad_bias, num_rows, C, stripe * kStripe);
    }
  });
}

}  // namespace tessera::kernels
