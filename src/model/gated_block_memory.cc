// What a block of today's decoders keeps and takes as one node: kernels/gated_block_passes.cc, operation by operation.
#include "model/decoder_step_memory.h"

namespace tessera {

// A projection that several rows share is one product in forward, and as many as it has parts in backward.
struct DecoderStepMemory::GatedLayer {
  bool rotates, norms_heads;
  kernels::AttentionBytes attention;
  std::int64_t q_statistics = 0, k_statistics = 0;  // of the norms of q and k
};

DecoderStepMemory::GatedLayer DecoderStepMemory::gated_layer(std::size_t unit) const {
  const LayerShape& layer = decoder_.layers[unit];
  kernels::AttentionSizes sizes = attention_case_;
  sizes.window = layer.window;
  GatedLayer result{layer.rotary.has_value(), decoder_.query_key_norm != QueryKeyNorm::kNone,
                    kernels::attention_bytes(sizes)};
  if (sizes.has_fused_kernel()) {  // attention.cu, whatever q, k and v are parts of
    result.attention.backward = result.attention.logsumexp;
  } else if (shape_.on_gpu && sizes.is_half()) {  // FlashAttention, asked for the same gradients every time
    result.attention.backward = kernels::flash_backward_bytes(sizes);
  }
  if (result.norms_heads) {
    const bool is_whole = decoder_.query_key_norm == QueryKeyNorm::kWhole;
    result.q_statistics = statistics_bytes(shape_.num_tokens * (is_whole ? 1 : decoder_.num_heads));
    result.k_statistics = statistics_bytes(shape_.num_tokens * (is_whole ? 1 : decoder_.num_key_value_heads));
  }
  return result;
}

void DecoderStepMemory::gated_node_forward(std::size_t unit, bool keeps, MemoryTape& tape) const {
  const std::int64_t rows = row_bytes_, inner = bytes_of(F_), context = bytes_of(Q_);
  const std::int64_t normed = rows + statistics_bytes_;
  const GatedLayer layer = gated_layer(unit);
  const bool norms_before = !names_.norm_before_attention.empty();

  if (norms_before) tape.take(normed);
  gated_heads_forward(layer, tape);
  if (norms_before) tape.give(normed);
  gated_heads_read(layer, keeps, tape);
  tape.take(context + layer.attention.logsumexp);
  tape.pass(layer.attention.forward);
  if (keeps && layer.norms_heads) tape.give(bytes_of(Q_ + K_));
  if (!keeps) tape.give(bytes_of(Q_ + 2 * K_));
  linear_forward(Q_, C_, tape);
  tape.give_unless(keeps, context + layer.attention.logsumexp);
  const auto norm_after = [&](const std::string& name) {
    if (name.empty()) return;
    tape.take(normed);
    tape.give_unless(keeps, normed);
  };
  norm_after(names_.norm_after_attention);

  const bool norms_sum = !names_.norm_before_mlp.empty();
  if (norms_sum) {
    tape.take(rows + normed);  // the sum, and its norm
    tape.give(rows);           // attended
  }
  if (names_.gate_up.empty()) {
    linear_forward(C_, F_, tape);
    linear_forward(C_, F_, tape);
  } else {
    linear_forward(C_, 2 * F_, tape);
  }
  if (norms_sum) tape.give(rows);
  tape.take(inner);  // the product
  tape.give_unless(keeps, 2 * inner);
  linear_forward(F_, C_, tape);
  tape.give(inner);
  norm_after(names_.norm_after_mlp);
  if (norms_sum) tape.give(statistics_bytes_);
  tape.give_unless(keeps, rows);  // the sum
}

// The projections.
void DecoderStepMemory::gated_heads_forward(const GatedLayer& layer, MemoryTape& tape) const {
  if (is_separate_) {
    for (const std::int64_t width : {Q_, K_, K_}) linear_forward(C_, width, tape);
    return;
  }
  linear_forward(C_, Q_ + 2 * K_, tape);
  if (layer.rotates && !layer.norms_heads) tape.take(bytes_of(K_));  // v apart
}

// Queries and keys as attention reads them. Without norms they replace the projections.
void DecoderStepMemory::gated_heads_read(const GatedLayer& layer, bool keeps, MemoryTape& tape) const {
  for (const auto& [width, statistics] : {std::pair(Q_, layer.q_statistics), {K_, layer.k_statistics}}) {
    const std::int64_t bytes = bytes_of(width);
    if (layer.norms_heads) {
      tape.take(bytes + statistics);
      if (layer.rotates) tape.pass(bytes);
      tape.give(statistics);
      if (!keeps && is_separate_) tape.give(bytes);
    } else if (layer.rotates) {
      tape.take(bytes);
      if (is_separate_) tape.give(bytes);
    }
  }
  if (is_separate_) return;
  if (layer.norms_heads) {
    if (!keeps) tape.give(bytes_of(Q_ + K_));  // a little early: the whole waits for v
  } else if (layer.rotates) {
    tape.give(bytes_of(Q_ + 2 * K_));
  }
}

void DecoderStepMemory::gated_node_backward(std::size_t unit, bool gradient_is_held, MemoryTape& tape) const {
  const GatedLayer layer = gated_layer(unit);
  HandOver gradients{*this, tape, {}};
  gated_mlp_backward(gradients);
  tape.give(row_bytes_);  // the sum
  gated_attention_backward(layer, gradients);
  gated_projections_backward(gradients);
  // The gradients of q, k and v, of the sum, and the input.
  tape.give(bytes_of(Q_ + 2 * K_) + 2 * row_bytes_);
  gradients.all();
  for (const auto* name : {&names_.norm_after_attention, &names_.norm_after_mlp}) {
    if (!name->empty()) tape.give(statistics_bytes_);
  }
  if (!gradient_is_held) tape.give(row_bytes_);
}

void DecoderStepMemory::HandOver::take(std::int64_t numel) {
  tape.take(numel * step.e_);
  waiting.push_back(numel);
}

void DecoderStepMemory::HandOver::on_cpu() {
  if (!step.shape_.on_gpu) all();
}

void DecoderStepMemory::HandOver::all() {
  for (const std::int64_t numel : waiting) tape.hand_over_in_place(numel);
  waiting.clear();
}

// The gradients of a projection's weight and bias: [T, in] to [T, out].
void DecoderStepMemory::gated_places(std::int64_t in, std::int64_t out, bool has_bias, HandOver& gradients) const {
  gradients.take(in * out);
  if (has_bias) gradients.take(out);
}

void DecoderStepMemory::gated_norm_backward(std::int64_t bytes, std::int64_t num_rows, std::int64_t width,
                                            HandOver& gradients) const {
  gradients.take(width);
  gradients.tape.take(bytes);
  if (shape_.on_gpu) gradients.tape.pass(kernels::num_rms_blocks(num_rows) * width * kFloatBytes);
}

// From the incoming gradient, which stays, to that of the sum after attention.
void DecoderStepMemory::gated_mlp_backward(HandOver& gradients) const {
  MemoryTape& tape = gradients.tape;
  const std::int64_t rows = row_bytes_, inner = bytes_of(F_), T = shape_.num_tokens;
  const bool norms_after = !names_.norm_after_mlp.empty(), norms_sum = !names_.norm_before_mlp.empty();
  if (norms_after) {
    gated_norm_backward(rows, T, C_, gradients);
    tape.give(rows);  // what was normalised
  }
  gated_places(F_, C_, decoder_.has_mlp_bias, gradients);
  tape.take(inner);
  tape.pass(product_scratch_bytes(shape_, T, C_, F_, false));
  tape.take(2 * inner);  // up's gradient, the product again
  tape.give(2 * inner);  // gate and up
  tape.pass(product_scratch_bytes(shape_, C_, T, F_, true));
  tape.give(inner + (norms_after ? rows : 0));
  gradients.on_cpu();

  if (norms_sum) tape.take(rows + statistics_bytes_);
  if (names_.gate_up.empty()) {
    for (int part = 0; part < 2; ++part) gated_places(C_, F_, decoder_.has_mlp_bias, gradients);
  } else {
    gated_places(C_, 2 * F_, decoder_.has_mlp_bias, gradients);
  }
  tape.pass(product_scratch_bytes(shape_, F_, T, C_, true));
  const std::int64_t apart = shape_.on_gpu ? 0 : rows;  // a product before it is added
  tape.take(rows);
  tape.pass(product_scratch_bytes(shape_, T, F_, C_, false));
  tape.give(inner);
  tape.pass(apart + product_scratch_bytes(shape_, T, F_, C_, false));
  tape.give(inner);
  gradients.on_cpu();
  if (!norms_sum) return;
  gated_norm_backward(rows, T, C_, gradients);
  tape.give(2 * rows + statistics_bytes_);
}

// To the gradients of q, k and v as projected.
void DecoderStepMemory::gated_attention_backward(const GatedLayer& layer, HandOver& gradients) const {
  MemoryTape& tape = gradients.tape;
  const std::int64_t rows = row_bytes_, T = shape_.num_tokens, D = decoder_.head_dim;
  const std::int64_t context = bytes_of(Q_), keys = bytes_of(K_);
  const bool norms_after = !names_.norm_after_attention.empty();
  if (norms_after) {
    gated_norm_backward(rows, T, C_, gradients);
    tape.give(rows);
  }
  gated_places(Q_, C_, decoder_.has_output_bias, gradients);
  tape.pass(product_scratch_bytes(shape_, C_, T, Q_, true));
  tape.take(context);
  tape.pass(product_scratch_bytes(shape_, T, C_, Q_, false));
  if (norms_after) tape.give(rows);
  gradients.on_cpu();

  if (layer.norms_heads) {
    for (const auto& [bytes, statistics] : {std::pair(context, layer.q_statistics), {keys, layer.k_statistics}}) {
      tape.take(bytes + statistics);
      if (layer.rotates) tape.pass(bytes);
    }
  }
  // On a CPU those of grouped keys and values are made when all heads have theirs.
  const bool sums_groups = !shape_.on_gpu && Q_ != K_;
  tape.take(context + (sums_groups ? 0 : 2 * keys));
  tape.pass(layer.attention.backward);
  if (sums_groups) tape.take(2 * keys);
  tape.give(2 * context + layer.attention.logsumexp);  // with its gradient
  tape.give(context + 2 * keys);                       // q, k and v: a little early, if they are one
  const bool is_whole = decoder_.query_key_norm == QueryKeyNorm::kWhole;
  for (const auto& [width, heads] : {std::pair(Q_, decoder_.num_heads), {K_, decoder_.num_key_value_heads}}) {
    if (layer.rotates) tape.pass(bytes_of(width));
    if (!layer.norms_heads) continue;
    gated_norm_backward(bytes_of(width), is_whole ? T : T * heads, is_whole ? width : D, gradients);
    tape.give(bytes_of(width));
  }
  if (layer.norms_heads) tape.give(context + keys + layer.q_statistics + layer.k_statistics);
}

void DecoderStepMemory::gated_projections_backward(HandOver& gradients) const {
  MemoryTape& tape = gradients.tape;
  const std::int64_t rows = row_bytes_, T = shape_.num_tokens;
  const bool norms_before = !names_.norm_before_attention.empty();
  if (norms_before) tape.take(rows + statistics_bytes_);
  if (is_separate_) {
    for (const std::int64_t width : {Q_, K_, K_}) gated_places(C_, width, decoder_.has_qkv_bias, gradients);
  } else {
    gated_places(C_, Q_ + 2 * K_, decoder_.has_qkv_bias, gradients);
  }
  for (const std::int64_t width : {Q_, K_}) tape.pass(product_scratch_bytes(shape_, width, T, C_, true));
  tape.take(rows);
  const std::int64_t apart = shape_.on_gpu ? 0 : rows;  // a product before it is added
  for (const std::int64_t width : {K_, Q_}) tape.pass(apart + product_scratch_bytes(shape_, T, width, C_, false));
  if (!norms_before) return;
  gated_norm_backward(rows, T, C_, gradients);
  tape.give(2 * rows + statistics_bytes_);
}

}  // namespace tessera
