// A whole block of a transformer as one autograd node: norm, attention, norm, GELU, with residuals around attention and
// around the MLP. As separate operations a block costs some forty nodes and launches whose host time a GPU waits for;
// and only one node for all can leave sums of gradients to kernels that read them anyway.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/sizes.h"

namespace tessera::kernels {

// C: hidden size.
struct TransformerBlock {
  at::Tensor input_norm_weight, input_norm_bias;            // [C]
  at::Tensor query_key_value_weight, query_key_value_bias;  // [3 C, C], [3 C]: each head's q, k and v are adjacent
  at::Tensor dense_weight, dense_bias;                      // [C, C], [C]
  at::Tensor norm_weight, norm_bias;                        // [C]
  at::Tensor up_weight, up_bias;                            // [4 C, C], [4 C]
  at::Tensor down_weight, down_bias;                        // [C, 4 C], [C]
  std::int64_t num_heads = 0;
  double epsilon = 0;  // of both norms
};

// Whether transformer_block() can be used: half types on a GPU with an attention kernel of our own.
bool transformer_block_serves(const at::Tensor& x, std::int64_t num_heads, const PackedAttention& how);

// x: [T, C], to the same. Kept for backward: x, the projection, attention's result, the sum after attention, and the
// GELU's input; the norms' results are computed again.
at::Tensor transformer_block(const at::Tensor& x, const TransformerBlock& block, const PackedAttention& how);

// What the node takes beside its result, in bytes: for the memory plan. `rows`: of x; `norm`: of one norm's statistics.
struct TransformerBlockBytes {
  std::int64_t kept, forward, backward;  // for backward; while each runs
};
inline TransformerBlockBytes transformer_block_bytes(std::int64_t T, std::int64_t C, std::int64_t rows,
                                                     std::int64_t norm, std::int64_t logsumexp) {
  const std::int64_t sums = kMostColumnSums * num_row_blocks(T) * C * static_cast<std::int64_t>(sizeof(float));
  // Kept: the projection, the context, the sum, the GELU's input. Forward: the GELU's result; before it the norms' and
  // attention's.
  return {(3 + 1 + 1 + 4) * rows + 2 * norm + logsumexp, 4 * rows, 8 * rows + sums + logsumexp};
}

}  // namespace tessera::kernels
