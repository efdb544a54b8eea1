#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/cpu_rows.h"
#include "kernels/parallel.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

template <typename T>
inline void forward_row(const T* x, const T* residual, const T* weight, const T* bias, double eps, T* sum, T* out,
                        float* mean, float* inverse_deviation, std::int64_t C) {
  const T* row = x;
  if (residual != nullptr) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < C; ++c) {
      sum[c] = static_cast<T>(static_cast<float>(x[c]) + static_cast<float>(residual[c]));
    }
    row = sum;
  }
  const float count = static_cast<float>(C);
  const float m = lane_sum(C, [row](std::int64_t c) { return static_cast<float>(row[c]); }) / count;
  // A second pass over a row that is in the cache: no cancellation, however far the mean is from zero.
  const float variance = lane_sum(C,
                                  [row, m](std::int64_t c) {
                                    const float d = static_cast<float>(row[c]) - m;
                                    return d * d;
                                  }) /
                         count;
  const float r = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance) + eps));
#pragma GCC ivdep
  for (std::int64_t c = 0; c < C; ++c) {
    out[c] = static_cast<T>((static_cast<float>(row[c]) - m) * r * static_cast<float>(weight[c]) +
                            static_cast<float>(bias[c]));
  }
  *mean = m;
  *inverse_deviation = r;
}

// grad_x of a row; adds its share to the sums of weight and bias.
template <typename T>
inline void backward_row(const T* grad, const T* grad_sum, const T* x, const T* weight, float m, float r, T* grad_x,
                         float* weight_sum, float* bias_sum, std::int64_t C) {
  const auto scaled = [&](std::int64_t c) { return static_cast<float>(grad[c]) * static_cast<float>(weight[c]); };
  const auto normed = [&](std::int64_t c) { return (static_cast<float>(x[c]) - m) * r; };
  const float count = static_cast<float>(C);
  const float along_one = lane_sum(C, scaled) / count;
  const float along_normed = lane_sum(C, [&](std::int64_t c) { return scaled(c) * normed(c); }) / count;
#pragma GCC ivdep
  for (std::int64_t c = 0; c < C; ++c) {
    const float n = normed(c), g = static_cast<float>(grad[c]);
    const float d = r * (scaled(c) - along_one - n * along_normed);
    grad_x[c] = static_cast<T>(grad_sum == nullptr ? d : d + static_cast<float>(grad_sum[c]));
    weight_sum[c] += g * n;
    bias_sum[c] += g;
  }
}

// The rows of one task: its sums of weight and bias gradients are kept separate and added in order at the end.
constexpr std::int64_t kRowBlock = 64;

struct Backward {
  const void *grad, *grad_sum, *x, *weight;
  const float *mean, *inverse_deviation;
  void* grad_x;
};

template <typename T>
inline void backward_rows(const Backward& b, std::int64_t first, std::int64_t last, std::int64_t C, float* weight_sum,
                          float* bias_sum) {
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t at = row * C;
    const T* extra = b.grad_sum == nullptr ? nullptr : static_cast<const T*>(b.grad_sum) + at;
    backward_row(static_cast<const T*>(b.grad) + at, extra, static_cast<const T*>(b.x) + at,
                 static_cast<const T*>(b.weight), b.mean[row], b.inverse_deviation[row], static_cast<T*>(b.grad_x) + at,
                 weight_sum, bias_sum, C);
  }
}

template <typename T>
inline void forward_rows(const void* x, const void* residual, const void* weight, const void* bias, double eps,
                         void* sum, void* out, float* mean, float* inverse_deviation, std::int64_t first,
                         std::int64_t last, std::int64_t C) {
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t at = row * C;
    const T* extra = residual == nullptr ? nullptr : static_cast<const T*>(residual) + at;
    T* total = residual == nullptr ? nullptr : static_cast<T*>(sum) + at;
    forward_row(static_cast<const T*>(x) + at, extra, static_cast<const T*>(weight), static_cast<const T*>(bias), eps,
                total, static_cast<T*>(out) + at, mean + row, inverse_deviation + row, C);
  }
}

TESSERA_VECTORISED
void forward_part(c10::ScalarType type, const void* x, const void* residual, const void* weight, const void* bias,
                  double eps, void* sum, void* out, float* mean, float* deviation, std::int64_t first,
                  std::int64_t last, std::int64_t C) {
  with_float_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    forward_rows<T>(x, residual, weight, bias, eps, sum, out, mean, deviation, first, last, C);
  });
}

TESSERA_VECTORISED
void backward_part(c10::ScalarType type, const Backward& b, std::int64_t first, std::int64_t last, std::int64_t C,
                   float* weight_sum, float* bias_sum) {
  with_float_type(type, [&](auto* null) {
    backward_rows<std::remove_pointer_t<decltype(null)>>(b, first, last, C, weight_sum, bias_sum);
  });
}

void add_blocks(c10::ScalarType type, const float* sums, std::int64_t num_blocks, std::int64_t stride, std::int64_t C,
                void* out) {
  std::vector<float> total(static_cast<std::size_t>(C), 0.0f);
  for (std::int64_t block = 0; block < num_blocks; ++block) {
    for (std::int64_t c = 0; c < C; ++c) total[static_cast<std::size_t>(c)] += sums[block * stride + c];
  }
  with_float_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    std::ranges::transform(total, static_cast<T*>(out), [](float sum) { return static_cast<T>(sum); });
  });
}

}  // namespace

void layer_norm_forward_cpu(const LayerNormShape& shape, const void* x, const void* residual, const void* weight,
                            const void* bias, double eps, void* sum, void* out, float* mean, float* inverse_deviation) {
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, shape.C));
  parallel_for(0, shape.num_rows, grain, [&](std::int64_t first, std::int64_t last) {
    forward_part(shape.type, x, residual, weight, bias, eps, sum, out, mean, inverse_deviation, first, last, shape.C);
  });
}

void layer_norm_backward_cpu(const LayerNormShape& shape, const void* grad, const void* grad_sum, const void* x,
                             const void* weight, const float* mean, const float* inverse_deviation, void* grad_x,
                             void* grad_weight, void* grad_bias) {
  const std::int64_t C = shape.C, num_blocks = (shape.num_rows + kRowBlock - 1) / kRowBlock;
  std::vector<float> sums(static_cast<std::size_t>(num_blocks * 2 * C), 0.0f);
  const Backward b{grad, grad_sum, x, weight, mean, inverse_deviation, grad_x};
  parallel_for(0, num_blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t block = first; block < last; ++block) {
      float* own = sums.data() + block * 2 * C;
      const std::int64_t begin = block * kRowBlock;
      backward_part(shape.type, b, begin, std::min(shape.num_rows, begin + kRowBlock), C, own, own + C);
    }
  });
  add_blocks(shape.type, sums.data(), num_blocks, 2 * C, C, grad_weight);
  add_blocks(shape.type, sums.data() + C, num_blocks, 2 * C, C, grad_bias);
}

}  // namespace tessera::kernels
