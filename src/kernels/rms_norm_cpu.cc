#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu_rows.h"
#include "kernels/float_rows.h"
#include "kernels/parallel.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

// What multiplies a normed row, in float32: the weight, or 1 + weight.
std::vector<float> factor_of(const RmsNormShape& shape, const void* weight) {
  std::vector<float> factor(static_cast<std::size_t>(shape.C));
  const float plus = shape.how == RmsWeight::kOnePlus ? 1.0f : 0.0f;
  with_float_type(shape.type, [&](auto* null) {
    const auto* from = static_cast<decltype(null)>(const_cast<void*>(weight));
    for (std::int64_t c = 0; c < shape.C; ++c) factor[static_cast<std::size_t>(c)] = plus + static_cast<float>(from[c]);
  });
  return factor;
}

inline float inverse_rms_of(const float* row, double eps, std::int64_t C) {
  const float squares = lane_sum(C, [row](std::int64_t c) { return row[c] * row[c]; });
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(squares / static_cast<float>(C)) + eps));
}

struct Forward {
  const void *x, *residual;
  const float* factor;
  double eps;
  void *sum, *out;
  float* inverse_rms;
};

template <typename T>
inline void forward_rows(const RmsNormShape& shape, const Forward& f, std::int64_t first, std::int64_t last) {
  const std::int64_t C = shape.C;
  const bool rounds_first = shape.how == RmsWeight::kAfterRounding;
  const float* factor = f.factor;
  std::vector<float> rooms(static_cast<std::size_t>(2 * C));
  float *one = rooms.data(), *two = one + C;
  for (std::int64_t r = first; r < last; ++r) {
    const float* row = as_floats(static_cast<const T*>(f.x) + shape.x_rows.at(r), one, C);
    if (f.residual != nullptr) {
      T* sum = static_cast<T*>(f.sum) + r * C;
      const float* extra = as_floats(static_cast<const T*>(f.residual) + r * C, two, C);
      float* total = float_room(sum, one);
#pragma GCC ivdep
      for (std::int64_t c = 0; c < C; ++c) total[c] = row[c] + extra[c];
      from_floats(total, sum, C);
      row = as_floats(sum, one, C);  // as its type holds it
    }
    const float scale = inverse_rms_of(row, f.eps, C);
    T* out = static_cast<T*>(f.out) + r * C;
    float* normed = float_room(out, two);
    if (rounds_first) {
#pragma GCC ivdep
      for (std::int64_t c = 0; c < C; ++c) normed[c] = row[c] * scale;
      from_floats(normed, out, C);
      const float* rounded = as_floats(out, two, C);
#pragma GCC ivdep
      for (std::int64_t c = 0; c < C; ++c) normed[c] = rounded[c] * factor[c];
    } else {
#pragma GCC ivdep
      for (std::int64_t c = 0; c < C; ++c) normed[c] = row[c] * scale * factor[c];
    }
    from_floats(normed, out, C);
    f.inverse_rms[r] = scale;
  }
}

struct Backward {
  const void *grad, *grad_sum, *x;
  const float *factor, *inverse_rms;
  void* grad_x;
};

// Adds the rows' share to `weight_sum`, which may be null.
template <typename T>
inline void backward_rows(const RmsNormShape& shape, const Backward& b, std::int64_t first, std::int64_t last,
                          float* rooms, float* weight_sum) {
  const std::int64_t C = shape.C;
  const float* factor = b.factor;
  float *one = rooms, *two = rooms + C, *three = rooms + 2 * C;
  for (std::int64_t r = first; r < last; ++r) {
    const float* row = as_floats(static_cast<const T*>(b.x) + shape.x_rows.at(r), one, C);
    const float* grad = as_floats(static_cast<const T*>(b.grad) + r * C, two, C);
    const float scale = b.inverse_rms[r];
    const float along = lane_sum(C, [=](std::int64_t c) { return grad[c] * factor[c] * row[c]; });
    const float along_row = along / static_cast<float>(C) * scale * scale * scale;
    T* grad_x = static_cast<T*>(b.grad_x) + r * C;
    float* result = float_room(grad_x, three);
#pragma GCC ivdep
    for (std::int64_t c = 0; c < C; ++c) result[c] = scale * grad[c] * factor[c] - along_row * row[c];
    if (weight_sum != nullptr) {
#pragma GCC ivdep
      for (std::int64_t c = 0; c < C; ++c) weight_sum[c] += grad[c] * (row[c] * scale);
    }
    if (b.grad_sum != nullptr) {
      const float* extra = as_floats(static_cast<const T*>(b.grad_sum) + r * C, one, C);
#pragma GCC ivdep
      for (std::int64_t c = 0; c < C; ++c) result[c] += extra[c];
    }
    from_floats(result, grad_x, C);
  }
}

TESSERA_VECTORISED
void forward_part(const RmsNormShape& shape, const Forward& f, std::int64_t first, std::int64_t last) {
  switch (shape.type) {
    case c10::kFloat:
      return forward_rows<float>(shape, f, first, last);
    case c10::kBFloat16:
      return forward_rows<c10::BFloat16>(shape, f, first, last);
    default:
      return forward_rows<c10::Half>(shape, f, first, last);
  }
}

TESSERA_VECTORISED
void backward_part(const RmsNormShape& shape, const Backward& b, std::int64_t first, std::int64_t last, float* rooms,
                   float* weight_sum) {
  switch (shape.type) {
    case c10::kFloat:
      return backward_rows<float>(shape, b, first, last, rooms, weight_sum);
    case c10::kBFloat16:
      return backward_rows<c10::BFloat16>(shape, b, first, last, rooms, weight_sum);
    default:
      return backward_rows<c10::Half>(shape, b, first, last, rooms, weight_sum);
  }
}

// The rows of one task: its sums for the weight are kept apart and added in order at the end. More rows of short ones,
// so that the sums stay small beside x.
std::int64_t rows_of_task(std::int64_t C) {
  return std::max<std::int64_t>(64, 65536 / C);
}

}  // namespace

void rms_norm_forward_cpu(const RmsNormShape& shape, const void* x, const void* residual, const void* weight,
                          double eps, void* sum, void* out, float* inverse_rms) {
  const auto factor = factor_of(shape, weight);
  const Forward f{x, residual, factor.data(), eps, sum, out, inverse_rms};
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / shape.C);
  parallel_for(0, shape.num_rows, grain,
               [&](std::int64_t first, std::int64_t last) { forward_part(shape, f, first, last); });
}

void rms_norm_backward_cpu(const RmsNormShape& shape, const void* grad, const void* grad_sum, const void* x,
                           const void* weight, const float* inverse_rms, void* grad_x, void* grad_weight) {
  const std::int64_t C = shape.C, task = rows_of_task(C), num_tasks = (shape.num_rows + task - 1) / task;
  const auto factor = factor_of(shape, weight);
  const Backward b{grad, grad_sum, x, factor.data(), inverse_rms, grad_x};
  const bool wants_weight = grad_weight != nullptr;
  std::vector<float> sums(static_cast<std::size_t>(wants_weight ? num_tasks * C : 0), 0.0f);
  parallel_for(0, num_tasks, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> rooms(static_cast<std::size_t>(3 * C));
    for (std::int64_t i = first; i < last; ++i) {
      backward_part(shape, b, i * task, std::min(shape.num_rows, (i + 1) * task), rooms.data(),
                    wants_weight ? sums.data() + i * C : nullptr);
    }
  });
  if (!wants_weight) return;
  std::vector<float> total(static_cast<std::size_t>(C), 0.0f);
  for (std::int64_t i = 0; i < num_tasks; ++i) {
    for (std::int64_t c = 0; c < C; ++c)
      total[static_cast<std::size_t>(c)] += sums[static_cast<std::size_t>(i * C + c)];
  }
  with_float_type(shape.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    std::ranges::transform(total, static_cast<T*>(grad_weight), [](float sum) { return static_cast<T>(sum); });
  });
}

}  // namespace tessera::kernels
