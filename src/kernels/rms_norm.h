// Root-mean-square norm, alone or after adding a residual, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "kernels/sizes.h"

namespace tessera::kernels {

// Rows x / sqrt(mean(x^2) + eps), in float32, times the weight; `how` it enters: RmsWeight of sizes.h. x: [..., C],
// maybe heads [T, H, D] of a wider projection: any view with a dense last dimension; weight: [C], of x's type. The
// result is contiguous. Backward keeps x and 1 / rms of each row.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, RmsWeight how);

// {x + residual, rms_norm(x + residual)}: one pass over memory where the device has a kernel for it.
std::pair<at::Tensor, at::Tensor> residual_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                                                    const at::Tensor& weight, double eps, RmsWeight how);

}  // namespace tessera::kernels
