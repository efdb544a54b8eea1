#include "model/decoder_step_memory.h"

#include "kernels/transformer_block.h"
#include "model/decoder_block.h"
#include "model/families/family.h"

namespace tessera {
namespace {

constexpr std::int64_t kIdBytes = 8;

kernels::AttentionSizes attention_of(const DecoderShape& decoder, const StepShape& shape) {
  kernels::AttentionSizes sizes{
      shape.num_tokens,    decoder.num_heads, decoder.head_dim,  shape.longest,
      shape.element_bytes, shape.on_gpu,      decoder.has_alibi, shape.training && decoder.attention_dropout > 0};
  sizes.num_kv_heads = decoder.num_key_value_heads;
  sizes.has_scale = decoder.attention_scale != 0;
  sizes.num_sequences = shape.num_sequences;
  return sizes;
}

}  // namespace

DecoderStepMemory::DecoderStepMemory(const DecoderDescription& decoder, const StepShape& shape)
    : decoder_(decoder.shape),
      names_(decoder.names),
      shape_(shape),
      e_(shape.element_bytes),
      C_(decoder_.hidden_size),
      F_(decoder_.inner_size),
      Q_(decoder_.query_width()),
      K_(decoder_.key_width()),
      row_bytes_(bytes_of(C_)),
      statistics_bytes_(statistics_bytes(shape.num_tokens)),
      rotates_(!decoder_.rotaries.empty()),
      is_separate_(decoder_.qkv == QkvLayout::kSeparate),
      attention_case_(attention_of(decoder_, shape)),
      attention_(kernels::attention_bytes(attention_case_)),
      is_one_node_(is_bloom_like(decoder_) && attention_case_.is_fused() && !drops(decoder_.hidden_dropout)),
      is_gated_node_(is_llama_like(decoder_) && !drops(decoder_.hidden_dropout) && !drops(decoder_.attention_dropout) &&
                     attention_.wide == 0) {}

std::int64_t DecoderStepMemory::statistics_bytes(std::int64_t num_rows) const {
  return (decoder_.norm == NormKind::kLayer ? 2 : 1) * num_rows * kFloatBytes;
}

void DecoderStepMemory::begin_forward(MemoryTape& tape) const {
  tape.take(row_bytes_);  // the tokens' rows
  if (rotates_) {
    const auto num_tables = static_cast<std::int64_t>(decoder_.rotaries.size());
    tape.take(num_tables * shape_.num_tokens * decoder_.rotaries.front().num_rotated * kFloatBytes);
  }
  if (decoder_.embedding_scale != 1) tape.pass(row_bytes_);
  if (decoder_.padding_id) tape.take(shape_.num_tokens);
  if (decoder_.num_learned_positions > 0) {
    tape.take(2 * row_bytes_);  // the positions' rows, and the sum
    tape.give(2 * row_bytes_);
  }
  // What the norm reads is kept by it.
  if (!names_.embedding_norm.empty()) tape.take(row_bytes_ + statistics_bytes_);
  dropout_forward(decoder_.embedding_dropout, row_bytes_, true, tape);
}

void DecoderStepMemory::unit_forward(std::size_t unit, bool keeps, MemoryTape& tape) const {
  if (is_gated_node_) return gated_node_forward(unit, keeps, tape);
  if (is_one_node_) return node_forward(keeps, tape);
  const std::int64_t rows = row_bytes_, T = shape_.num_tokens;
  const bool norms_before = !names_.norm_before_attention.empty();
  if (norms_before) norm_forward(rows, T, keeps, tape);
  qkv_forward(keeps, tape);
  attention_forward(keeps, tape);
  linear_forward(Q_, C_, tape);  // attended
  const std::int64_t qkv = bytes_of(Q_ + 2 * K_);
  if (!keeps || widens_heads()) tape.give(qkv);
  tape.give_unless(keeps, bytes_of(Q_));  // the context
  if (!names_.norm_after_attention.empty()) {
    norm_forward(rows, T, keeps, tape);
    tape.give_unless(keeps, rows);
  }
  dropout_forward(decoder_.hidden_dropout, rows, keeps, tape);
  const bool norms_sum = !names_.norm_before_mlp.empty() || !names_.norm_of_attention_sum.empty();
  const std::int64_t statistics = norms_sum ? statistics_bytes_ : 0;
  tape.take((norms_sum ? 2 : 1) * rows + statistics);  // the sum, and that normed
  tape.give_unless(keeps, statistics);
  const bool sum_goes = !names_.norm_of_attention_sum.empty();  // only its norm is used
  if (sum_goes) tape.give_unless(keeps, rows);
  mlp_forward(keeps, tape);
  if (!names_.norm_after_mlp.empty()) {
    norm_forward(rows, T, keeps, tape);
    tape.give_unless(keeps, rows);
  }
  dropout_forward(decoder_.hidden_dropout, rows, keeps, tape);
  if (!names_.norm_of_mlp_sum.empty()) {
    tape.take(2 * rows + statistics_bytes_);  // the second sum, and the output
    tape.give_unless(keeps, rows + statistics_bytes_);
    tape.give(rows);  // what the MLP gave
  }
  tape.give(rows);  // attended
  tape.give_unless(keeps, (norms_before ? rows : 0) + (norms_sum && !sum_goes ? 2 : 1) * rows);
}

void DecoderStepMemory::qkv_forward(bool keeps, MemoryTape& tape) const {
  if (is_separate_) {
    for (const std::int64_t width : {Q_, K_, K_}) linear_forward(C_, width, tape);
  } else {
    linear_forward(C_, Q_ + 2 * K_, tape);
  }
  if (decoder_.query_key_norm != QueryKeyNorm::kNone) {
    const bool is_whole = decoder_.query_key_norm == QueryKeyNorm::kWhole;
    const std::int64_t T = shape_.num_tokens;
    for (const auto& [width, heads] : {std::pair(Q_, decoder_.num_heads), {K_, decoder_.num_key_value_heads}}) {
      norm_forward(bytes_of(width), is_whole ? T : T * heads, keeps, tape);
      tape.give_unless(keeps, bytes_of(width));
    }
  }
  if (!rotates_) return;
  for (const std::int64_t width : {Q_, K_}) {
    tape.take(bytes_of(width));
    if (is_separate_) tape.give(bytes_of(width));
  }
}

void DecoderStepMemory::mlp_forward(bool keeps, MemoryTape& tape) const {
  const std::int64_t inner = bytes_of(F_);
  if (decoder_.is_gated()) {
    if (names_.gate_up.empty()) {
      linear_forward(C_, F_, tape);
      linear_forward(C_, F_, tape);
    } else {
      linear_forward(C_, 2 * F_, tape);
    }
    tape.take(inner);  // the product, only for the next
    linear_forward(F_, C_, tape);
    tape.give(inner);
    tape.give_unless(keeps, 2 * inner);
  } else if (decoder_.mlp == MlpKind::kGelu) {
    linear_forward(C_, F_, tape);
    tape.take(inner);  // the GELU's, only for the product
    linear_forward(F_, C_, tape);
    tape.give(inner);
    tape.give_unless(keeps, inner);
  } else if (decoder_.mlp == MlpKind::kExactGelu) {
    linear_forward(C_, F_, tape);
    tape.take(inner);
    linear_forward(F_, C_, tape);
    tape.give_unless(keeps, 2 * inner);
  } else {
    linear_forward(C_, F_, tape);  // the ReLU is in place
    const std::int64_t dropped = drops(decoder_.inner_dropout) ? mask_bytes(inner) + inner : 0;
    tape.take(dropped);
    tape.give_unless(keeps, dropped);
    linear_forward(F_, C_, tape);
    tape.give_unless(keeps, inner);
  }
}

void DecoderStepMemory::unit_backward(std::size_t unit, bool gradient_is_held, MemoryTape& tape) const {
  if (is_gated_node_) return gated_node_backward(unit, gradient_is_held, tape);
  if (is_one_node_) return node_backward(gradient_is_held, tape);
  const std::int64_t rows = row_bytes_;
  const bool norms_before = !names_.norm_before_attention.empty();
  const bool norms_mlp_sum = !names_.norm_of_mlp_sum.empty();
  // Without a norm of the last sum, the incoming gradient also waits for the residual's side.
  if (norms_mlp_sum) row_norm_backward(gradient_is_held ? rows : 2 * rows, tape);  // the sum, the incoming gradient
  std::int64_t gone = dropout_backward(decoder_.hidden_dropout, rows, tape);
  if (!names_.norm_after_mlp.empty()) {
    row_norm_backward(gone + rows, tape);  // with what it normalised
    gone = rows;
  }
  mlp_backward(gone, tape);
  if (norms_mlp_sum) tape.give(rows);  // added to the residual's
  const bool norms_sum = !names_.norm_before_mlp.empty() || !names_.norm_of_attention_sum.empty();
  if (norms_sum) {
    // What was normalised, its gradients: the MLP's and the residual's.
    row_norm_backward(gradient_is_held || norms_mlp_sum ? 2 * rows : 3 * rows, tape);
  } else {
    tape.give(rows);  // the MLP's gradient, added to the residual's
  }
  gone = dropout_backward(decoder_.hidden_dropout, rows, tape);
  if (!names_.norm_after_attention.empty()) {
    row_norm_backward(gone + rows, tape);
    gone = rows;
  }
  linear_backward(Q_, C_, decoder_.has_output_bias, gone, tape);
  attention_backward(tape);
  qkv_backward(rows, tape);                             // with the block's input, or its norm
  if (norms_before) row_norm_backward(2 * rows, tape);  // the block's input, the gradient
  tape.give(rows);                                      // added to the residual's
}

void DecoderStepMemory::qkv_backward(std::int64_t gone_bytes, MemoryTape& tape) const {
  if (rotates_) {
    for (const std::int64_t width : {K_, Q_}) tape.pass(bytes_of(width));
  }
  if (decoder_.query_key_norm != QueryKeyNorm::kNone) {
    const bool is_whole = decoder_.query_key_norm == QueryKeyNorm::kWhole;
    const std::int64_t T = shape_.num_tokens, D = decoder_.head_dim;
    for (const auto& [width, heads] : {std::pair(K_, decoder_.num_key_value_heads), {Q_, decoder_.num_heads}}) {
      norm_backward(bytes_of(width), is_whole ? T : T * heads, is_whole ? width : D, 2 * bytes_of(width), tape);
    }
  }
  if (!is_separate_) {
    return linear_backward(C_, Q_ + 2 * K_, decoder_.has_qkv_bias, bytes_of(Q_ + 2 * K_) + gone_bytes, tape);
  }
  std::int64_t gone = 0;  // gradients of the input that were added up
  for (const std::int64_t width : {K_, K_, Q_}) {
    linear_backward(C_, width, decoder_.has_qkv_bias, gone + bytes_of(width), tape);
    gone = row_bytes_;
  }
  tape.give(gone + gone_bytes);
}

void DecoderStepMemory::mlp_backward(std::int64_t gone_bytes, MemoryTape& tape) const {
  if (decoder_.is_gated()) return gated_backward(gone_bytes, tape);
  if (decoder_.mlp == MlpKind::kGelu) return bias_gelu_backward(gone_bytes, tape);
  relu_backward(gone_bytes, tape);
}

void DecoderStepMemory::bias_gelu_backward(std::int64_t gone_bytes, MemoryTape& tape) const {
  const std::int64_t inner = bytes_of(F_), T = shape_.num_tokens;
  tape.take(inner);
  tape.pass(product_scratch_bytes(shape_, T, C_, F_, false));
  tape.take(inner + F_ * C_ * e_);  // the GELU again, and the weight's gradient
  tape.pass(product_scratch_bytes(shape_, C_, T, F_, true));
  tape.give(inner);
  tape.take(C_ * e_ + inner + F_ * e_);  // of the product's bias, of the GELU
  tape.give(2 * inner + gone_bytes);
  tape.hand_over(F_);
  tape.hand_over(F_ * C_);
  tape.hand_over(C_);
  linear_backward(C_, F_, false, inner + row_bytes_, tape);
}

void DecoderStepMemory::gated_backward(std::int64_t gone_bytes, MemoryTape& tape) const {
  const std::int64_t inner = bytes_of(F_), T = shape_.num_tokens;
  tape.take(inner);
  tape.pass(product_scratch_bytes(shape_, T, C_, F_, false));
  tape.take(inner + F_ * C_ * e_);  // the product again, and the weight's gradient
  tape.pass(product_scratch_bytes(shape_, C_, T, F_, true));
  tape.give(inner);
  if (decoder_.has_mlp_bias) tape.take(C_ * e_);
  tape.take(2 * inner);               // of gate and up
  tape.give(3 * inner + gone_bytes);  // with both, and the product's gradient
  tape.hand_over(F_ * C_);
  if (decoder_.has_mlp_bias) tape.hand_over(C_);
  if (!names_.gate_up.empty()) {
    tape.pass(4 * inner);  // each half in a gradient of the whole
    return linear_backward(C_, 2 * F_, decoder_.has_mlp_bias, 2 * inner + row_bytes_, tape);
  }
  linear_backward(C_, F_, decoder_.has_mlp_bias, inner, tape);
  linear_backward(C_, F_, decoder_.has_mlp_bias, inner + row_bytes_, tape);
  tape.give(row_bytes_);  // added to the other's
}

void DecoderStepMemory::relu_backward(std::int64_t gone_bytes, MemoryTape& tape) const {
  const std::int64_t inner = bytes_of(F_);
  const bool drops_inner = drops(decoder_.inner_dropout);
  // The ReLU keeps its result itself; only the linear layer keeps a dropout's or a GELU's result.
  const bool keeps_result = drops_inner || decoder_.mlp == MlpKind::kExactGelu;
  linear_backward(F_, C_, true, gone_bytes + (keeps_result ? inner : 0), tape);
  if (drops_inner) tape.give(dropout_backward(decoder_.inner_dropout, inner, tape));
  tape.take(inner);  // of the ReLU
  tape.give(2 * inner);
  linear_backward(C_, F_, true, inner + row_bytes_, tape);
}

void DecoderStepMemory::node_forward(bool keeps, MemoryTape& tape) const {
  const auto node =
      kernels::transformer_block_bytes(shape_.num_tokens, C_, row_bytes_, statistics_bytes_, attention_.logsumexp);
  tape.take(node.kept + row_bytes_);
  tape.pass(node.forward);
  if (!keeps) tape.give(node.kept);
}

void DecoderStepMemory::node_backward(bool gradient_is_held, MemoryTape& tape) const {
  const auto node =
      kernels::transformer_block_bytes(shape_.num_tokens, C_, row_bytes_, statistics_bytes_, attention_.logsumexp);
  const std::int64_t rows = row_bytes_, C = C_;
  const auto parameters = {3 * C * C, C * C, 4 * C * C, 4 * C * C, C, C, 3 * C, C, C, C, 4 * C, C};
  for (const std::int64_t numel : parameters) tape.take(numel * e_);
  tape.take(rows);
  tape.pass(node.backward);
  tape.give(node.kept + rows + (gradient_is_held ? 0 : rows));  // with the unit's input
  for (const std::int64_t numel : parameters) tape.hand_over_in_place(numel);
}

void DecoderStepMemory::begin_backward(MemoryTape& tape) const {
  // The gradient that arrives goes.
  if (const std::int64_t dropped = dropout_backward(decoder_.embedding_dropout, row_bytes_, tape)) tape.give(dropped);
  if (!names_.embedding_norm.empty()) row_norm_backward(2 * row_bytes_, tape);
  if (decoder_.num_learned_positions > 0) {
    tape.take(decoder_.num_learned_positions * C_ * e_);
    tape.hand_over(decoder_.num_learned_positions * C_);
  }
  if (decoder_.embedding_scale != 1) tape.pass(row_bytes_);
  const std::int64_t ids = shape_.num_tokens * kIdBytes;
  if (decoder_.is_tied) {
    // The rows sorted by id, equal ids summed; then added to the head's gradient, which has waited for this.
    tape.pass(row_bytes_ + 5 * ids);
    tape.hand_over_in_place(decoder_.vocab_size * C_);
  } else {
    tape.take(table_bytes());
    tape.hand_over(decoder_.vocab_size * C_);
  }
  tape.give(row_bytes_);
  if (decoder_.padding_id) tape.give(shape_.num_tokens);
  if (rotates_) {
    const auto num_tables = static_cast<std::int64_t>(decoder_.rotaries.size());
    tape.give(num_tables * shape_.num_tokens * decoder_.rotaries.front().num_rotated * kFloatBytes);
  }
}

std::unique_ptr<StepMemory> language_step_memory(const Json& config, const std::string& origin,
                                                 const StepShape& shape) {
  const JsonSource source{&config, origin};
  const JsonReader reader(source);
  return std::make_unique<DecoderStepMemory>(family_of(reader).read(reader), shape);
}

}  // namespace tessera
