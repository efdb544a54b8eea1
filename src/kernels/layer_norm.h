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

// Without autograd, for nodes that have a backward of their own.
struct Normed {
  at::Tensor sum;  // x + residual; undefined without a residual
  at::Tensor out;
  at::Tensor mean, inverse_deviation;  // [rows] float32
};
Normed norm_forward(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, const at::Tensor& bias,
                    double eps);

struct NormBackward {
  at::Tensor grad;
  at::Tensor grad_sum;  // of the sum, added to the gradient of x; may be undefined
  at::Tensor x;         // what was normalised
  at::Tensor weight, bias, mean, inverse_deviation;
};
struct NormGradients {
  at::Tensor x, weight, bias;
  at::Tensor out;                // the norm's result again
  at::Tensor grad_sums, x_sums;  // sums over the rows of grad_sum and of the gradient of x
};
enum class NormExtras { kNone, kOut, kOutAndSums };  // which of the last three are wanted
NormGradients norm_backward(const NormBackward& norm, NormExtras extras);

}  // namespace tessera::kernels
