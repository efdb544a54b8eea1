#include "model/step_memory.h"

#include <algorithm>

#include "kernels/linear_cross_entropy.h"
#include "kernels/sizes.h"

namespace tessera {
namespace {

constexpr std::int64_t kIdBytes = 8;

}  // namespace

std::int64_t product_scratch_bytes(const StepShape& shape, std::int64_t M, std::int64_t K, std::int64_t N,
                                   bool is_weight_gradient) {
  if (shape.on_gpu || shape.element_bytes == kFloatBytes) return 0;
  // oneDNN on ARM, as measured: both factors reordered, K padded to 4, M and N to 8; one more copy of a transposed
  // factor; eight rows of float32 sums and a little more.
  const auto up = [](std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; };
  const std::int64_t e = shape.element_bytes, transposed = is_weight_gradient ? M * K * e : 0;
  return (up(K, 4) * up(N, 8) + up(M, 8) * up(K, 4)) * e + transposed + 8 * up(N, 8) * kFloatBytes + 4352;
}

TextStepMemory::TextStepMemory(const Sizes& sizes, const StepShape& shape)
    : sizes_(sizes),
      shape_(shape),
      e_(shape.element_bytes),
      C_(sizes.hidden_size),
      row_bytes_(shape.num_tokens * C_ * e_),
      statistics_bytes_(2 * shape.num_tokens * kFloatBytes),
      attention_case_{shape.num_tokens,
                      sizes.num_heads,
                      C_ / sizes.num_heads,
                      shape.longest,
                      e_,
                      shape.on_gpu,
                      sizes.has_alibi,
                      shape.training && sizes.attention_dropout > 0},
      attention_(kernels::attention_bytes(attention_case_)) {}

void TextStepMemory::dropout_forward(std::int64_t bytes, bool keeps, MemoryTape& tape) const {
  if (!drops()) return;
  tape.take(mask_bytes(bytes) + bytes);
  tape.give(bytes);
  if (!keeps) tape.give(mask_bytes(bytes));
}

std::int64_t TextStepMemory::dropout_backward(std::int64_t bytes, MemoryTape& tape) const {
  if (!drops()) return 0;
  tape.take(bytes);
  tape.give(mask_bytes(bytes));
  return bytes;
}

void TextStepMemory::attention_forward(bool keeps, MemoryTape& tape) const {
  tape.take(row_bytes_ + attention_.logsumexp);
  tape.take(4 * attention_.wide);  // q, k, v and the result
  tape.pass(attention_.forward);
  if (!keeps) tape.give(4 * attention_.wide + attention_.logsumexp);
}

void TextStepMemory::attention_backward(MemoryTape& tape) const {
  const std::int64_t rows = row_bytes_, wide = attention_.wide;
  if (widens_heads()) {
    tape.give(rows);  // the context, which only the linear layer kept
    // The incoming gradient, widened; gradients of q, k, v; that of q in float32, accumulated by FlashAttention.
    const std::int64_t sums = wide / e_ * kFloatBytes + attention_.logsumexp;
    tape.take(4 * wide + sums);
    tape.give(wide + sums);
    tape.give(4 * wide + attention_.logsumexp + rows);  // what was kept, and the context's gradient
    tape.take(3 * rows);                                // one tensor of the three
    tape.give(3 * wide);
    return;
  }
  tape.take(3 * rows);
  tape.pass(attention_.backward);
  tape.give(3 * rows + rows + attention_.logsumexp + rows);  // q, k, v, context, and the context's gradient
  if (!attention_case_.is_fused()) tape.pass(3 * rows);      // one tensor of the three
}

void TextStepMemory::linear_forward(std::int64_t in, std::int64_t out, MemoryTape& tape) const {
  tape.take(shape_.num_tokens * out * e_);
  tape.pass(product_scratch_bytes(shape_, shape_.num_tokens, in, out, false));
}

void TextStepMemory::linear_backward(std::int64_t in, std::int64_t out, bool has_bias, std::int64_t gone_bytes,
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

void TextStepMemory::norm_backward(std::int64_t gone_bytes, MemoryTape& tape) const {
  tape.take(row_bytes_ + 2 * C_ * e_);
  tape.give(gone_bytes + statistics_bytes_);
  tape.hand_over(C_);
  tape.hand_over(C_);
}

// The last norm and the head with its loss. The head computes its gradients right away.
void TextStepMemory::end_forward(MemoryTape& tape) const {
  if (sizes_.has_last_norm) tape.take(row_bytes_ + statistics_bytes_);
  head_forward(tape);
  tape.give(row_bytes_);  // what the head read: no operator keeps it
}

void TextStepMemory::head_forward(MemoryTape& tape) const {
  const std::int64_t T = shape_.num_tokens, n = shape_.num_counted;
  tape.pass(4 * T);  // which rows count, which are wrong: one byte each
  tape.take(n * kIdBytes);
  tape.take(row_bytes_ + table_bytes() + bias_bytes());  // gradients of the hidden states, the weight and the bias
  if (n > 0) {
    const std::int64_t rows = kernels::head_chunk_rows(sizes_.vocab_size, C_, e_, shape_.on_gpu, n);
    tape.take(rows * sizes_.vocab_size * e_);
    head_chunk(rows, tape);
    tape.give(rows * sizes_.vocab_size * e_);
  }
  tape.give(n * kIdBytes);
}

void TextStepMemory::head_chunk(std::int64_t rows, MemoryTape& tape) const {
  const std::int64_t input = rows * C_ * e_ + rows * kIdBytes;
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
void TextStepMemory::head_chunk_in_parts(std::int64_t rows, MemoryTape& tape) const {
  const std::int64_t classes = kernels::head_part_classes(rows, sizes_.vocab_size, C_);
  const std::int64_t part = rows * classes * e_, hidden = rows * C_ * e_, sum = rows * C_ * kFloatBytes;
  tape.pass(part + product_scratch_bytes(shape_, rows, C_, classes, false));
  tape.take(sum);
  tape.pass(part + hidden + std::max(product_scratch_bytes(shape_, rows, classes, C_, false), sum));
  tape.pass(hidden);
  tape.give(sum);
  tape.pass(part + product_scratch_bytes(shape_, classes, rows, C_, true));
}

void TextStepMemory::end_backward(MemoryTape& tape) const {
  if (sizes_.has_head_bias) tape.hand_over(sizes_.vocab_size);
  if (!sizes_.is_tied) tape.hand_over_in_place(sizes_.vocab_size * C_);
  // What was normalised is the last unit's output.
  if (sizes_.has_last_norm) norm_backward(2 * row_bytes_, tape);
}

void TextStepMemory::look_up_backward(MemoryTape& tape) const {
  const std::int64_t ids = shape_.num_tokens * kIdBytes;
  if (sizes_.is_tied) {
    // The rows sorted by id, equal ids summed; then added to the head's gradient, which has waited for this.
    tape.pass(row_bytes_ + 5 * ids);
    tape.hand_over_in_place(sizes_.vocab_size * C_);
  } else {
    tape.take(table_bytes());
    tape.hand_over(sizes_.vocab_size * C_);
  }
  tape.give(row_bytes_);
}

}  // namespace tessera
