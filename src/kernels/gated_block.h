// A whole block of today's decoders (Llama, Qwen, Mistral, Gemma, Phi, OLMo, SmolLM) as one autograd node: RMS norms
// before or after each part, attention with rotary positions, a gated MLP, and a residual around each of the two.
//
// It keeps for backward only what is dear, which is what a matrix product or attention has computed. Norms' results,
// the gated product and, behind norms of queries and keys, what attention reads are cheap, and are computed again. On a
// GPU one node also takes the host less time than some twenty, and writes gradients where they are collected.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "kernels/attention.h"
#include "kernels/rotary.h"
#include "kernels/sizes.h"

namespace tessera::kernels {

// C hidden size, F inner size, H heads, Hkv key/value heads, head size D. What is undefined does not exist.
struct GatedBlock {
  struct Projection {
    at::Tensor weight, bias;  // [out, in], [out]
  };
  Projection query_key_value;    // [(H + 2 Hkv) D, C]: the heads of q, then of k, then of v; or instead
  Projection query, key, value;  //   [H D, C], [Hkv D, C], [Hkv D, C]
  Projection output;             // [C, H D]
  Projection gate_up;            // [2 F, C]: the gate's rows first; or instead
  Projection gate, up;           //   [F, C]
  Projection down;               // [C, F]
  at::Tensor norm_before_attention, norm_after_attention, norm_before_mlp, norm_after_mlp;  // [C]
  at::Tensor query_norm, key_norm;  // of each head: [D]; or of all together: [H D], [Hkv D]
  std::int64_t num_heads = 0, num_key_value_heads = 0, head_size = 0;
  double epsilon = 0;  // of all norms
  RmsWeight norm_weight = RmsWeight::kAfterRounding;
  GateActivation activation = GateActivation::kSilu;
};

// Whether gated_block() can be used: no dropout, no ALiBi, and on a GPU heads that attention takes as they are.
bool gated_block_serves(const at::Tensor& x, std::int64_t head_size, const PackedAttention& how);

// x: [T, C], contiguous, to the same. rotary: none for a layer without positions. The same inputs give the same bits,
// with gradients and without.
at::Tensor gated_block(const at::Tensor& x, const GatedBlock& block, const std::optional<RotaryTable>& rotary,
                       const PackedAttention& how);

}  // namespace tessera::kernels
