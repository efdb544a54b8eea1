// One block of a decoder: attention and an MLP, each added to what it reads, with norms where the family has them.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>

#include "kernels/attention.h"
#include "kernels/gated_block.h"
#include "kernels/rotary.h"
#include "kernels/transformer_block.h"
#include "model/dropout.h"
#include "model/key_value_cache.h"
#include "model/layers.h"

namespace tessera {

// Attention as one layer sees it in one pass. A block calls it once.
struct Attend {
  kernels::PackedAttention how{};
  std::optional<kernels::RotaryTable> rotary{};
  std::uint64_t dropout_key = 0;   // where `how` drops
  KeyValueCache* cache = nullptr;  // of a generation: it keeps the keys and values of
  std::int64_t layer = 0;          //   this layer
  bool is_prompt = true;           // of a generation: whole prompts, else one token per sequence

  // q [T, H, D], k and v [T, Hkv, D], to [T, H, D]. q and k have been rotated.
  at::Tensor operator()(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const;
  // The same for one projection without rotary positions, as kernels::packed_attention takes it.
  at::Tensor operator()(const at::Tensor& qkv, std::int64_t parts_dim) const;
};

class DecoderBlock : public torch::nn::Module {
 public:
  DecoderBlock(const DecoderDescription& decoder, const at::TensorOptions& options);

  // [T, C] to the same.
  at::Tensor forward(const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const;

 private:
  void make_attention(const LayerMaker& make, const DecoderNames& names);
  void make_norms(const LayerMaker& make, const DecoderNames& names);  // between attention and MLP
  void make_mlp(const LayerMaker& make, const DecoderNames& names);

  at::Tensor attention(const at::Tensor& x, const Attend& attend) const;
  at::Tensor attended_heads(const at::Tensor& x, const Attend& attend) const;
  at::Tensor mlp(const at::Tensor& x, const DropoutKeys& keys) const;
  bool is_one_node(const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const;
  kernels::TransformerBlock transformer_block() const;
  kernels::GatedBlock gated_block() const;

  DecoderShape shape_;
  DecoderNorm before_attention_, after_attention_, before_mlp_, after_mlp_, of_attention_sum_, of_mlp_sum_;
  DecoderNorm query_norm_, key_norm_;
  Projection qkv_, query_, key_, value_, output_, up_, gate_, gate_up_, down_;
};

// Whether kernels::transformer_block computes a block of this shape where attention is a kernel of its own, that is,
// whether it is a block of BLOOM in its usual form.
bool is_bloom_like(const DecoderShape& shape);
// Whether kernels::gated_block computes a block of this shape.
bool is_llama_like(const DecoderShape& shape);

}  // namespace tessera
