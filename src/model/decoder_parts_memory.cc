// What the parts of a decoder's step keep and take: attention, linear layers, norms, dropout, and the head.
#include <algorithm>

#include "kernels/linear_cross_entropy.h"
#include "model/decoder_step_memory.h"

namespace tessera {
namespace {

constexpr std::int64_t kHeadIdBytes = 8;

}  // namespace

void DecoderStepMemory::dropout_forward(double probability, std::int64_t bytes, bool keeps, MemoryTape& tape) const {
  if (!drops(probability)) return;
  tape.take(mask_bytes(bytes) + bytes);
  tape.give(bytes);
  if (!keeps) tape.give(mask_bytes(bytes));
}

std::int64_t DecoderStepMemory::dropout_backward(double probability, std::int64_t bytes, MemoryTape& tape) const {
  if (!drops(probability)) return 0;
  tape.take(bytes);
  tape.give(mask_bytes(bytes));
  return bytes;
}

void DecoderStepMemory::attention_forward(bool keeps, MemoryTape& tape) const {
  tape.take(bytes_of(Q_) + attention_.logsumexp);
  tape.take(4 * attention_.wide);  // q, k, v and the result
  tape.pass(attention_.forward);
  if (!keeps) tape.give(4 * attention_.wide + attention_.logsumexp);
}

void DecoderStepMemory::attention_backward(MemoryTape& tape) const {
  const std::int64_t context = bytes_of(Q_), qkv = bytes_of(Q_ + 2 * K_), wide = attention_.wide;
  if (widens_heads()) {
    tape.give(context);  // which only the linear layer kept
    // The incoming gradient, widened; gradients of q, k, v; that of q in float32, accumulated by FlashAttention.
    const std::int64_t sums = wide / e_ * kFloatBytes + attention_.logsumexp;
    tape.take(4 * wide + sums);
    tape.give(wide + sums);
    tape.give(4 * wide + attention_.logsumexp + context);  // what was kept, and the context's gradient
    tape.take(qkv);                                        // one tensor of the three
    tape.give(3 * wide);
    return;
  }
  tape.take(qkv);
  tape.pass(attention_.backward);
  tape.give(qkv + context + attention_.logsumexp + context);  // what was kept, and the context's gradient
  if (!is_separate_ && !rotates_ && !attention_case_.is_fused()) tape.pass(qkv);  // one tensor of the three
}

void DecoderStepMemory::linear_forward(std::int64_t in, std::int64_t out, MemoryTape& tape) const {
  tape.take(shape_.num_tokens * out * e_);
  tape.pass(product_scratch_bytes(shape_, shape_.num_tokens, in, out, false));
}

void DecoderStepMemory::linear_backward(std::int64_t in, std::int64_t out, bool has_bias, std::int64_t gone_bytes,
                                        MemoryTape& tape) const {
  const std::int64_t T = shape_.num_tokens;
  tape.take(T * in * e_);
  tape.pass(product_scratch_bytes(shape_, T, out, in, false));
  tape.take(in * out * e_);
  tape.pass(product_scratch_bytes(shape_, out, T, in, true));
  if (has_bias) tape.take(out * e_);
  tape.give(gone_bytes);
  if (has_bias) tape.hand_over(out);
  tape.hand_over(in * out);
}

void DecoderStepMemory::norm_forward(std::int64_t bytes, std::int64_t num_rows, bool keeps, MemoryTape& tape) const {
  tape.take(bytes + statistics_bytes(num_rows));
  tape.give_unless(keeps, statistics_bytes(num_rows));
}

void DecoderStepMemory::norm_backward(std::int64_t bytes, std::int64_t num_rows, std::int64_t width,
                                      std::int64_t gone_bytes, MemoryTape& tape) const {
  const bool has_bias = decoder_.norm == NormKind::kLayer;
  tape.take(bytes + (has_bias ? 2 : 1) * width * e_);
  tape.give(gone_bytes + statistics_bytes(num_rows));
  if (has_bias) tape.hand_over(width);
  tape.hand_over(width);
}

// The last norm and the head with its loss. The head computes its gradients right away.
void DecoderStepMemory::end_forward(MemoryTape& tape) const {
  if (!names_.last_norm.empty()) tape.take(row_bytes_ + statistics_bytes_);
  head_forward(tape);
  tape.give(row_bytes_);  // what the head read: no operator keeps it
}

void DecoderStepMemory::head_forward(MemoryTape& tape) const {
  const std::int64_t T = shape_.num_tokens, n = shape_.num_counted;
  tape.pass(4 * T);  // which rows count, which are wrong: one byte each
  tape.take(n * kHeadIdBytes);
  tape.take(row_bytes_ + table_bytes() + bias_bytes());  // gradients of the hidden states, the weight and the bias
  if (n > 0) {
    const std::int64_t rows = kernels::head_chunk_rows(decoder_.vocab_size, C_, e_, shape_.on_gpu, n);
    tape.take(rows * decoder_.vocab_size * e_);
    head_chunk(rows, tape);
    tape.give(rows * decoder_.vocab_size * e_);
  }
  tape.give(n * kHeadIdBytes);
}

void DecoderStepMemory::head_chunk(std::int64_t rows, MemoryTape& tape) const {
  const std::int64_t input = rows * C_ * e_ + rows * kHeadIdBytes;
  tape.take(input);
  if (shape_.on_gpu || e_ == kFloatBytes) {
    tape.pass(rows * C_ * e_);
  } else {
    head_chunk_in_parts(rows, tape);
  }
  tape.pass(bias_bytes());
  tape.give(input);
}

// Half types on a CPU: by parts of the vocabulary, the gradient of the hidden states accumulated in float32.
void DecoderStepMemory::head_chunk_in_parts(std::int64_t rows, MemoryTape& tape) const {
  const std::int64_t classes = kernels::head_part_classes(rows, decoder_.vocab_size, C_);
  const std::int64_t part = rows * classes * e_, hidden = rows * C_ * e_, sum = rows * C_ * kFloatBytes;
  tape.pass(part + product_scratch_bytes(shape_, rows, C_, classes, false));
  tape.take(sum);
  tape.pass(part + hidden + std::max(product_scratch_bytes(shape_, rows, classes, C_, false), sum));
  tape.pass(hidden);
  tape.give(sum);
  tape.pass(part + product_scratch_bytes(shape_, classes, rows, C_, true));
}

void DecoderStepMemory::end_backward(MemoryTape& tape) const {
  if (decoder_.has_head_bias) tape.hand_over(decoder_.vocab_size);
  if (!decoder_.is_tied) tape.hand_over_in_place(decoder_.vocab_size * C_);
  // What was normalised is the last unit's output.
  if (!names_.last_norm.empty()) row_norm_backward(2 * row_bytes_, tape);
}

}  // namespace tessera
