// The ways to compute packed attention; attention.cc checks the arguments and picks one.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/attention.h"

namespace tessera::kernels {

// A forward pass without autograd, as it is and as its backward takes it.
struct AttentionPass {
  at::Tensor out;                    // [T, H, D]
  at::Tensor logsumexp;              // in the form of the way that was picked
  at::Tensor rng_state, rng_offset;  // FlashAttention's
};
struct AttentionGradients {
  at::Tensor q, k, v;
};

// Throws Error where packed_attention does.
void check_attention_inputs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how);

// For nodes of more than attention (gated_block.h): without dropout and ALiBi, in the best way for these arguments,
// which attention_backward picks again. The same inputs give the same bits.
bool attention_has_passes(const at::Tensor& x, std::int64_t D, const PackedAttention& how);  // x: of q's device, type
AttentionPass attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const PackedAttention& how);
AttentionGradients attention_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const PackedAttention& how, const AttentionPass& pass);

// CPU: blocks of queries against all their keys, per sequence and head. seed: of the dropout.
AttentionPass cpu_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how,
                          std::uint64_t seed);
AttentionGradients cpu_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const PackedAttention& how, const AttentionPass& pass, std::uint64_t seed);
at::Tensor attention_on_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how);

// GPU, half types: libtorch's FlashAttention over cu_seqlens, with ALiBi in extra dimensions of the heads.
at::Tensor attention_by_flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const PackedAttention& how);
// Whether FlashAttention supports heads of D, ALiBi's dimensions included, of x's device and type.
bool flash_serves(const at::Tensor& x, std::int64_t D, const PackedAttention& how);
// Whether it takes them as they are.
bool flash_serves_as_is(const at::Tensor& x, std::int64_t D, const PackedAttention& how);
// Of such heads, or of widened ones, of which D numbers count. `repeats`: backward adds in one order.
AttentionPass flash_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::int64_t D,
                            const PackedAttention& how);
AttentionGradients flash_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  std::int64_t D, const PackedAttention& how, const AttentionPass& pass, bool repeats);

// GPU, half types: attention.cu. fused_serves: of x's device and type, with heads of D; a fused projection must be
// contiguous.
bool fused_serves(const at::Tensor& x, std::int64_t D, const PackedAttention& how);
at::Tensor attention_by_fused(const at::Tensor& qkv, std::int64_t parts_dim, const PackedAttention& how);
// Of q, k and v apart, each contiguous; k and v may have fewer heads.
AttentionPass fused_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how);
AttentionGradients fused_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const PackedAttention& how, const AttentionPass& pass);

// Any device and type: libtorch's own operators, one sequence after another. On a GPU it waits for the offsets.
at::Tensor attention_by_operators(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const PackedAttention& how);

inline bool drops(const PackedAttention& how) {
  return how.training && how.dropout > 0;
}

inline double scale_of(const PackedAttention& how, std::int64_t D) {
  return how.scale != 0 ? how.scale : 1.0 / std::sqrt(static_cast<double>(D));
}

// `how` from an autograd node's forward to its backward. Nothing in it has a gradient.
struct KeptAttention : torch::CustomClassHolder {
  explicit KeptAttention(PackedAttention attention) : how(std::move(attention)) {}
  PackedAttention how;
};
inline void keep(torch::autograd::AutogradContext& context, const PackedAttention& how) {
  context.saved_data["how"] = c10::IValue::make_capsule(c10::make_intrusive<KeptAttention>(how));
}
inline PackedAttention kept_in(torch::autograd::AutogradContext& context) {
  return static_cast<KeptAttention&>(*context.saved_data["how"].toCapsule()).how;
}

inline at::Tensor with_dense_heads(const at::Tensor& x) {
  return x.stride(2) == 1 ? x : x.contiguous();
}

}  // namespace tessera::kernels
