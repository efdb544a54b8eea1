// Root-mean-square norm, alone or after adding a residual, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace tessera::kernels {

// How the weight enters. In half types the order of rounding shows.
enum class RmsWeight {
  kAfterRounding,   // Llama: rounds the normed row to the type, then multiplies (in the type)
  kBeforeRounding,  // OLMo 2: multiplies in float32, then rounds
  kOnePlus          // Gemma: multiplies by 1 + weight in float32, then rounds
};

// Rows x / sqrt(mean(x^2) + eps), in float32, times the weight. x: [..., C], maybe heads [T, H, D] of a wider
// projection: any view with a dense last dimension; weight: [C], of x's type. The result is contiguous. Backward keeps
// x and 1 / rms of each row.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, RmsWeight how);

// {x + residual, rms_norm(x + residual)}: one pass over memory where the device has a kernel for it.
std::pair<at::Tensor, at::Tensor> residual_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                                                    const at::Tensor& weight, double eps, RmsWeight how);

}  // namespace tessera::kernels
