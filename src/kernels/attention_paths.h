// The ways to compute packed attention; attention.cc checks the arguments and picks one.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <utility>

#include "kernels/attention.h"

namespace tessera::kernels {

// CPU: blocks of queries against all their keys, per sequence and head.
at::Tensor attention_on_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how);

// GPU, half types: libtorch's FlashAttention over cu_seqlens, with ALiBi in extra dimensions of the heads.
at::Tensor attention_by_flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const PackedAttention& how);
// Whether FlashAttention supports the head size, ALiBi's dimensions included.
bool flash_serves(const at::Tensor& q, const PackedAttention& how);

// GPU, half types: attention.cu, for a fused projection, which must be contiguous. fused_serves: of x's device and
// type, with heads of D.
bool fused_serves(const at::Tensor& x, std::int64_t D, const PackedAttention& how);
at::Tensor attention_by_fused(const at::Tensor& qkv, std::int64_t parts_dim, const PackedAttention& how);

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
