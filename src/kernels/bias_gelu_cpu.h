// Bias + GELU on the CPU, as pointers and sizes.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace tessera::kernels {

// Contiguous rows of C elements; `out` may be `x`.
void bias_gelu_forward_cpu(c10::ScalarType type, const void* x, const void* bias, void* out, std::int64_t num_rows,
                           std::int64_t C);

// grad_x = grad * gelu'(x + bias); grad_bias[c] = the sum of grad_x[:, c], added in float32 in an order that does not
// depend on the number of threads.
void bias_gelu_backward_cpu(c10::ScalarType type, const void* grad, const void* x, const void* bias, void* grad_x,
                            void* grad_bias, std::int64_t num_rows, std::int64_t C);

}  // namespace tessera::kernels
