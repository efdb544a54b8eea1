// Operations of a ResNet with kernels of our own, on a GPU in half types, channels-last.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "kernels/sizes.h"

namespace tessera::kernels {

// Batch norm in training with the addition and the ReLU that follow it in a ResNet: two passes over the values forward
// and two backward, where libtorch's separate operations make five and eight. C: channels.
struct BatchNorm {
  at::Tensor weight, bias;               // [C] float32
  at::Tensor running_mean, running_var;  // [C] float32, moved by `momentum`; undefined: none
  double momentum = 0, epsilon = 0;
};

// Whether the functions below can be used.
bool batch_norm_serves(const at::Tensor& x_BCHW);

// x: [B, C, H, W]. The same inputs give the same bits. Sums and what lies between the three steps are float32, where
// libtorch's separate operations round to the half type.
// `residual`: with kAddRelu, like x.
at::Tensor batch_norm(const at::Tensor& x_BCHW, const BatchNorm& norm, BatchNormThen then,
                      std::optional<at::Tensor> residual_BCHW = std::nullopt);

// One pass as the GPU's kernels see it. Forward writes out, mean and inverse_deviation; backward reads them, out only
// where there was an addition.
struct BatchNormPass {
  at::Tensor x, weight, bias, residual;
  BatchNormThen then = BatchNormThen::kNothing;
  at::Tensor out, mean, inverse_deviation;
};
struct BatchNormGradients {
  at::Tensor x, residual, weight, bias;
};

// The max pooling of a ResNet's stem: windows of 3 x 3, stride 2, padding 1. On a GPU in half types, channels-last, a
// kernel of our own keeps one byte for a result, where libtorch keeps its input and eight bytes.
//
// Whether that kernel is used.
bool max_pool_serves(const at::Tensor& x_BCHW);

// What at::max_pool2d gives; of equal values the first in the window gets the gradient.
at::Tensor max_pool(const at::Tensor& x_BCHW);

}  // namespace tessera::kernels
