// transformer_block.h's passes on a GPU, for cuda_kernels.h. x and grad: [T, C], contiguous.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/transformer_block.h"

namespace tessera::kernels {

// `kept`: what backward needs.
at::Tensor block_forward(const at::Tensor& x, const TransformerBlock& block, const PackedAttention& how,
                         at::Tensor& kept);
// The gradient of x. `gradients`: tensors that those of the parameters are written to; undefined matrices are left out.
at::Tensor block_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& kept,
                          const TransformerBlock& block, const PackedAttention& how, const TransformerBlock& gradients);

}  // namespace tessera::kernels
