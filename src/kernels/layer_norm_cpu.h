// Layer-norm on the CPU: pointers and sizes, all contiguous; each row's mean and 1 / deviation are float32.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace tessera::kernels {

struct LayerNormShape {
  c10::ScalarType type;
  std::int64_t num_rows, C;
};

// With a residual: sum = x + residual, and the norm is of that sum after rounding to its type. Without (null): `sum` is
// not written.
void layer_norm_forward_cpu(const LayerNormShape& shape, const void* x, const void* residual, const void* weight,
                            const void* bias, double eps, void* sum, void* out, float* mean, float* inverse_deviation);

// `x` is what was normalised. `grad_sum` (or null) is added to grad_x. Sums over rows are taken in an order that does
// not depend on the number of threads.
void layer_norm_backward_cpu(const LayerNormShape& shape, const void* grad, const void* grad_sum, const void* x,
                             const void* weight, const float* mean, const float* inverse_deviation, void* grad_x,
                             void* grad_weight, void* grad_bias);

}  // namespace tessera::kernels
