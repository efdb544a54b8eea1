// x + bias, then the GELU of BLOOM and the linear layer behind it, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

namespace tessera::kernels {

// linear(gelu(x + bias), weight, out_bias); x: [..., C], bias: [C], weight: [K, C], out_bias: [K]. gelu(y) is
// y * 0.5 * (1 + tanh(0.79788456 * y * (1 + 0.044715 * y * y))). Its result, the largest tensor of a block, is not
// kept: backward recomputes it, one extra read and write pass beside two matrix products.
at::Tensor bias_gelu_linear(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& weight,
                            const at::Tensor& out_bias);

}  // namespace tessera::kernels
