// Layer-norm, alone or after adding a residual, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace tessera::kernels {

// x: [..., C]; weight, bias: [C].
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps);

// {x + residual, layer_norm(x + residual)}: one pass over memory where the device has a kernel for it.
std::pair<at::Tensor, at::Tensor> residual_layer_norm(const at::Tensor& x, const at::Tensor& residual,
                                                      const at::Tensor& weight, const at::Tensor& bias, double eps);

// For the GPU's kernels: grad_sum, of the sum, is added to the gradient of x and may be undefined; x is what was
// normalised.
struct NormBackward {
  at::Tensor grad, grad_sum, x, weight, mean, inverse_deviation;
};
struct NormGradients {
  at::Tensor x, weight, bias;
};

}  // namespace tessera::kernels
