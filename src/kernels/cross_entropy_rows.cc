#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda_kernels.h"
#include "kernels/linear_cross_entropy.h"
#include "kernels/parallel.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

// Blocks of 4,096 classes are added in float32 lanes, the block sums in double.
constexpr std::int64_t kSumBlock = 4096;

template <typename T, typename F>
inline double sum_of(const T* row, std::int64_t V, F f) {
  double total = 0;
  for (std::int64_t begin = 0; begin < V; begin += kSumBlock) {
    total += static_cast<double>(
        lane_sum(std::min(kSumBlock, V - begin), [&](std::int64_t v) { return f(row[begin + v]); }));
  }
  return total;
}

struct Smoothing {
  float on_target;  // 1 - eps
  float on_every;   // eps / V
};

// The loss of a row. With `to_gradient` the row becomes scale * (softmax - smoothed one-hot).
template <typename T>
inline double loss_of_row(T* row, std::int64_t V, std::int64_t target, const Smoothing& smoothing, float scale,
                          bool to_gradient) {
  const float max = lane_max<32>(row, V);
  const double at_target = static_cast<double>(static_cast<float>(row[target]));
  double logits_total = 0;
  if (smoothing.on_every > 0) logits_total = sum_of(row, V, [](T x) { return static_cast<float>(x); });
  const double exp_total = sum_of(row, V, [max](T x) { return exp_of(static_cast<float>(x) - max); });
  const double logsumexp = static_cast<double>(max) + std::log(exp_total);
  if (to_gradient) {
    const float inverse = static_cast<float>(1.0 / exp_total) * scale, every = smoothing.on_every * scale;
    for (std::int64_t v = 0; v < V; ++v) {
      row[v] = static_cast<T>(exp_of(static_cast<float>(row[v]) - max) * inverse - every);
    }
    const float p = exp_of(static_cast<float>(at_target) - max) * inverse;
    row[target] = static_cast<T>(p - every - smoothing.on_target * scale);
  }
  return static_cast<double>(smoothing.on_target) * (logsumexp - at_target) +
         static_cast<double>(smoothing.on_every) * (static_cast<double>(V) * logsumexp - logits_total);
}

TESSERA_VECTORISED
double loss_of_row(c10::ScalarType type, void* row, std::int64_t V, std::int64_t target, const Smoothing& smoothing,
                   float scale, bool to_gradient) {
  return with_float_type(type, [&](auto* null) {
    return loss_of_row(static_cast<decltype(null)>(row), V, target, smoothing, scale, to_gradient);
  });
}

}  // namespace

void cross_entropy_rows(const at::Tensor& logits, const at::Tensor& targets, double label_smoothing,
                        double gradient_scale, bool to_gradient, const at::Tensor& sum) {
  const std::int64_t R = logits.size(0), V = logits.size(1);
  const Smoothing smoothing{static_cast<float>(1.0 - label_smoothing),
                            static_cast<float>(label_smoothing / static_cast<double>(V))};
  if (logits.is_cuda()) {
    cuda_kernels().cross_entropy_rows(logits, targets, smoothing.on_target, smoothing.on_every,
                                      static_cast<float>(gradient_scale), to_gradient, sum);
    return;
  }
  std::vector<double> losses(static_cast<std::size_t>(R));
  auto* data = static_cast<char*>(logits.mutable_data_ptr());
  const auto row_bytes = V * static_cast<std::int64_t>(logits.element_size());
  const auto* target = targets.const_data_ptr<std::int64_t>();
  parallel_for(0, R, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      losses[static_cast<std::size_t>(r)] = loss_of_row(logits.scalar_type(), data + r * row_bytes, V, target[r],
                                                        smoothing, static_cast<float>(gradient_scale), to_gradient);
    }
  });
  double total = 0;
  for (double loss : losses) total += loss;
  *sum.mutable_data_ptr<float>() += static_cast<float>(total);
}

}  // namespace tessera::kernels
