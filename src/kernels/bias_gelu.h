// x + bias, then the GELU of BLOOM, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

namespace tessera::kernels {

// y * 0.5 * (1 + tanh(0.79788456 * y * (1 + 0.044715 * y * y))) of y = x + bias; x: [..., C], bias: [C]. Only x and
// bias are kept for backward.
at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias);

// linear(bias_gelu(x, bias), weight, out_bias); weight: [K, C], out_bias: [K]. The GELU's result, the largest tensor of
// a block, is not kept: backward recomputes it, one extra read and write pass beside two matrix products.
at::Tensor bias_gelu_linear(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& weight,
                            const at::Tensor& out_bias);

}  // namespace tessera::kernels
