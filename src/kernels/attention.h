// Causal attention over packed sequences, with or without ALiBi, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace tessera::kernels {

// T tokens of all sequences, H heads of queries, Hkv of keys and values, head size D.
struct PackedAttention {
  at::Tensor cu_seqlens;  // [B + 1] int32, on the tensors' device: where each sequence begins; the last entry is T
  std::int64_t max_seqlen = 0;
  std::optional<at::Tensor> alibi_slopes;  // [H] float32: adds slope_h * (j - i) to the score of query i and key j
  double dropout = 0;                      // of the probabilities, while `training`
  bool training = false;
  double scale = 0;         // of q k^T; 0: 1 / sqrt(D)
  std::int64_t window = 0;  // a query sees itself and the window - 1 tokens before it; 0: all before it
};

// softmax(q k^T * scale + bias) v within each sequence; no token sees a later one. q: [T, H, D]; k, v: [T, Hkv, D],
// where H is a multiple of Hkv and query head h reads key/value head h / (H / Hkv); possibly strided views. The result
// is [T, H, D] contiguous. float32, bf16 and fp16 on any device; half types accumulate in float32. No [T, T] matrix is
// kept for backward. On a GPU in half types this is FlashAttention. Where heads are grouped or wider than 192, or there
// is a window or a scale, the same inputs give the same bits; else that is so if deterministic algorithms are asked
// for.
at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how);

// The same for one fused projection, whose gradient is one tensor as well: qkv is [T, H, 3, D] (parts_dim 2) or
// [T, 3, H, D] (1). On a GPU in half types, with the head sizes of the BLOOM family and without dropout, this is a
// kernel of our own (attention.cu), which reads and writes the projection in place.
at::Tensor packed_attention(const at::Tensor& qkv, std::int64_t parts_dim, const PackedAttention& how);

}  // namespace tessera::kernels
