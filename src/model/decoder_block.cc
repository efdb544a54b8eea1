// Shape letters: T tokens of all sequences, C hidden size, F inner size, H heads, Hkv key/value heads, head size D.
#include "model/decoder_block.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

#include "kernels/bias_gelu.h"
#include "kernels/gated_linear.h"

namespace tessera {
namespace {

// The places of a block's dropouts; attention's own is kAttentionPlace.
constexpr std::uint64_t kAttendedPlace = 1, kInnerPlace = 2;

kernels::GateActivation activation_of(MlpKind kind) {
  return kind == MlpKind::kGatedSilu ? kernels::GateActivation::kSilu : kernels::GateActivation::kGelu;
}

}  // namespace

at::Tensor Attend::operator()(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const {
  if (cache != nullptr && !is_prompt) return cache->attend(layer, q, k, v, how);
  if (cache != nullptr) cache->store(layer, k, v);
  if (!how.training) return kernels::packed_attention(q, k, v, how);
  const SeededGenerator seeded(q.device(), dropout_key);
  return kernels::packed_attention(q, k, v, how);
}

at::Tensor Attend::operator()(const at::Tensor& qkv, std::int64_t parts_dim) const {
  const auto part = [&](std::int64_t index) { return qkv.select(parts_dim, index); };
  if (cache != nullptr && !is_prompt) return cache->attend(layer, part(0), part(1), part(2), how);
  if (cache != nullptr) cache->store(layer, part(1), part(2));
  if (!how.training) return kernels::packed_attention(qkv, parts_dim, how);
  const SeededGenerator seeded(qkv.device(), dropout_key);
  return kernels::packed_attention(qkv, parts_dim, how);
}

bool is_bloom_like(const DecoderShape& s) {
  return s.norm == NormKind::kLayer && s.qkv == QkvLayout::kPerHead && s.mlp == MlpKind::kGelu && s.has_alibi &&
         s.has_qkv_bias && s.has_output_bias && s.has_mlp_bias && !s.residual_after_norm &&
         s.inner_size == 4 * s.hidden_size;
}

bool is_llama_like(const DecoderShape& s) {
  return s.norm != NormKind::kLayer && s.is_gated() && s.qkv != QkvLayout::kPerHead && !s.has_alibi &&
         !s.residual_after_norm && !s.stores_transposed;
}

DecoderBlock::DecoderBlock(const DecoderDescription& decoder, const at::TensorOptions& options)
    : shape_(decoder.shape) {
  // In this order parameters lie in the unit's buffer and in checkpoints. It is that of transformers' classes, whose
  // optimizers know parameters by their numbers alone: gated decoders name their norms last.
  const LayerMaker make{*this, shape_, options};
  if (!shape_.is_gated()) before_attention_ = make.norm(decoder.names.norm_before_attention, shape_.hidden_size);
  make_attention(make, decoder.names);
  if (!shape_.is_gated()) make_norms(make, decoder.names);
  make_mlp(make, decoder.names);
  if (shape_.is_gated()) {
    before_attention_ = make.norm(decoder.names.norm_before_attention, shape_.hidden_size);
    make_norms(make, decoder.names);
  }
  after_mlp_ = make.norm(decoder.names.norm_after_mlp, shape_.hidden_size);
  of_attention_sum_ = make.norm(decoder.names.norm_of_attention_sum, shape_.hidden_size);
  of_mlp_sum_ = make.norm(decoder.names.norm_of_mlp_sum, shape_.hidden_size);
}

void DecoderBlock::make_attention(const LayerMaker& make, const DecoderNames& names) {
  const std::int64_t C = shape_.hidden_size, Q = shape_.query_width(), K = shape_.key_width();
  const bool is_whole = shape_.query_key_norm == QueryKeyNorm::kWhole;
  const auto make_output = [&] { output_ = make.projection(names.output, Q, C, shape_.has_output_bias); };
  const bool begins_with_output = shape_.is_gated() && !names.qkv.empty();  // Phi 3
  if (begins_with_output) make_output();
  qkv_ = make.projection(names.qkv, C, shape_.qkv_width(), shape_.has_qkv_bias);
  query_ = make.projection(names.query, C, Q, shape_.has_qkv_bias);
  key_ = make.projection(names.key, C, K, shape_.has_qkv_bias);
  value_ = make.projection(names.value, C, K, shape_.has_qkv_bias);
  if (!begins_with_output) make_output();
  query_norm_ = make.norm(names.query_norm, is_whole ? Q : shape_.head_dim);
  key_norm_ = make.norm(names.key_norm, is_whole ? K : shape_.head_dim);
}

void DecoderBlock::make_norms(const LayerMaker& make, const DecoderNames& names) {
  after_attention_ = make.norm(names.norm_after_attention, shape_.hidden_size);
  before_mlp_ = make.norm(names.norm_before_mlp, shape_.hidden_size);
}

void DecoderBlock::make_mlp(const LayerMaker& make, const DecoderNames& names) {
  const std::int64_t C = shape_.hidden_size, F = shape_.inner_size;
  gate_up_ = make.projection(names.gate_up, C, 2 * F, shape_.has_mlp_bias);
  gate_ = make.projection(names.gate, C, F, shape_.has_mlp_bias);
  up_ = make.projection(names.up, C, F, shape_.has_mlp_bias);
  down_ = make.projection(names.down, F, C, shape_.has_mlp_bias);
}

at::Tensor DecoderBlock::forward(const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const {
  if (is_one_node(x, attend, keys)) {
    return shape_.is_gated() ? kernels::gated_block(x, gated_block(), attend.rotary, attend.how)
                             : kernels::transformer_block(x, transformer_block(), attend.how);
  }
  const at::Tensor normed = before_attention_.exists() ? before_attention_(x) : x;
  at::Tensor attended = attention(normed, attend);
  if (after_attention_.exists()) attended = after_attention_(attended);
  attended = dropout(attended, shape_.hidden_dropout, keys, kAttendedPlace);

  const at::Tensor& residual = shape_.residual_after_norm ? normed : x;
  at::Tensor sum, input;  // of attention and the residual; what the MLP reads
  if (before_mlp_.exists()) {
    std::tie(sum, input) = before_mlp_.of_sum(attended, residual);
  } else {
    input = of_attention_sum_.exists() ? of_attention_sum_.of_sum(attended, residual).second : attended + residual;
    sum = input;
  }

  at::Tensor output = mlp(input, keys);
  if (after_mlp_.exists()) output = after_mlp_(output);
  output = dropout(output, shape_.hidden_dropout, keys, shape_.mlp == MlpKind::kRelu ? kInnerPlace + 1 : kInnerPlace);
  if (of_mlp_sum_.exists()) return of_mlp_sum_.of_sum(output, sum).second;
  // In place: no operator keeps its result for its gradient.
  return output.add_(shape_.residual_after_norm ? input : sum);
}

at::Tensor DecoderBlock::attention(const at::Tensor& x, const Attend& attend) const {
  return output_(attended_heads(x, attend).view({x.size(0), shape_.query_width()}));
}

at::Tensor DecoderBlock::attended_heads(const at::Tensor& x, const Attend& attend) const {
  const std::int64_t T = x.size(0), H = shape_.num_heads, Hkv = shape_.num_key_value_heads, D = shape_.head_dim;
  const std::int64_t Q = shape_.query_width(), K = shape_.key_width();
  at::Tensor q, k, v;
  if (qkv_.exists()) {
    const at::Tensor all = qkv_(x);
    if (shape_.qkv == QkvLayout::kPerHead) return attend(all.view({T, H, 3, D}), /*parts_dim=*/2);
    if (H == Hkv && !attend.rotary) return attend(all.view({T, 3, H, D}), /*parts_dim=*/1);
    q = all.narrow(1, 0, Q), k = all.narrow(1, Q, K), v = all.narrow(1, Q + K, K);
  } else {
    q = query_(x), k = key_(x), v = value_(x);
  }
  if (shape_.query_key_norm == QueryKeyNorm::kWhole) q = query_norm_(q), k = key_norm_(k);
  q = q.unflatten(1, {H, D}), k = k.unflatten(1, {Hkv, D}), v = v.unflatten(1, {Hkv, D});
  if (shape_.query_key_norm == QueryKeyNorm::kPerHead) q = query_norm_(q), k = key_norm_(k);
  if (attend.rotary) q = kernels::rotary(q, *attend.rotary), k = kernels::rotary(k, *attend.rotary);
  return attend(q, k, v);
}

at::Tensor DecoderBlock::mlp(const at::Tensor& x, const DropoutKeys& keys) const {
  if (shape_.is_gated()) {
    const std::int64_t F = shape_.inner_size;
    const at::Tensor both = gate_up_.exists() ? gate_up_(x) : at::Tensor();
    const at::Tensor gate = both.defined() ? both.narrow(1, 0, F) : gate_(x);
    const at::Tensor up = both.defined() ? both.narrow(1, F, F) : up_(x);
    return kernels::gated_linear(gate, up, down_.matrix(), down_.bias, activation_of(shape_.mlp));
  }
  if (shape_.mlp == MlpKind::kGelu) {
    // The bias is fused with the GELU: one pass over [T, F].
    return kernels::bias_gelu_linear(at::linear(x, up_.matrix()), up_.bias, down_.matrix(), down_.bias);
  }
  if (shape_.mlp == MlpKind::kExactGelu) return down_(at::gelu(up_(x)));
  return down_(dropout(up_(x).relu_(), shape_.inner_dropout, keys, kInnerPlace));
}

bool DecoderBlock::is_one_node(const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const {
  const bool drops = keys.active() && shape_.hidden_dropout > 0;
  if (attend.cache != nullptr || drops) return false;
  if (is_llama_like(shape_)) return kernels::gated_block_serves(x, shape_.head_dim, attend.how);
  return is_bloom_like(shape_) && kernels::transformer_block_serves(x, shape_.num_heads, attend.how);
}

kernels::TransformerBlock DecoderBlock::transformer_block() const {
  return {before_attention_.weight, before_attention_.bias, qkv_.weight, qkv_.bias, output_.weight, output_.bias,
          before_mlp_.weight,       before_mlp_.bias,       up_.weight,  up_.bias,  down_.weight,   down_.bias,
          shape_.num_heads,         shape_.norm_epsilon};
}

kernels::GatedBlock DecoderBlock::gated_block() const {
  const auto of = [](const Projection& projection) {
    return kernels::GatedBlock::Projection{projection.weight, projection.bias};
  };
  kernels::GatedBlock block;
  block.query_key_value = of(qkv_);
  block.query = of(query_), block.key = of(key_), block.value = of(value_);
  block.output = of(output_);
  block.gate_up = of(gate_up_);
  block.gate = of(gate_), block.up = of(up_);
  block.down = of(down_);
  block.norm_before_attention = before_attention_.weight;
  block.norm_after_attention = after_attention_.weight;
  block.norm_before_mlp = before_mlp_.weight;
  block.norm_after_mlp = after_mlp_.weight;
  block.query_norm = query_norm_.weight;
  block.key_norm = key_norm_.weight;
  block.num_heads = shape_.num_heads;
  block.num_key_value_heads = shape_.num_key_value_heads;
  block.head_size = shape_.head_dim;
  block.epsilon = shape_.norm_epsilon;
  block.norm_weight = rms_weight_of(shape_.norm);
  block.activation = activation_of(shape_.mlp);
  return block;
}

}  // namespace tessera
