// The forward and backward pass of gated_block.h, by hand.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "kernels/attention_paths.h"
#include "kernels/gated_block.h"
#include "kernels/parameter_gradients.h"

namespace tessera::kernels {

// What backward needs. T tokens; letters as in gated_block.h.
struct KeptGatedBlock : torch::CustomClassHolder {
  GatedBlock block;
  std::optional<RotaryTable> rotary;
  PackedAttention how;
  at::Tensor x;                       // [T, C]
  at::Tensor q, k, v;                 // [T, H, D], [T, Hkv, D]: as attention reads them, or before a norm of q and k
  AttentionPass attention;            // its result is what the output projection reads
  at::Tensor attended, attended_rms;  // before the norm after attention, if there is one: [T, C], [T]
  at::Tensor sum;                     // of that and x: [T, C]
  at::Tensor gate, up;                // [T, F]
  at::Tensor mlp, mlp_rms;            // before the norm after the MLP, if there is one
};

// From block, rotary, how and x. keeps: for backward; else what is not needed any more is released.
at::Tensor gated_block_forward(KeptGatedBlock& kept, bool keeps);

// To the gradient of x, undefined unless it is wanted. Releases what was kept, as it is used.
at::Tensor gated_block_backward(const at::Tensor& grad, KeptGatedBlock& kept, bool wants_x,
                                ParameterGradients& gradients);

}  // namespace tessera::kernels
