// The memory use of model/bloom.cc.
#include "kernels/sizes.h"
#include "model/bloom_config.h"
#include "model/text_step_memory.h"

namespace tessera {
namespace {

class BloomStepMemory : public TextStepMemory {
 public:
  BloomStepMemory(const Sizes& sizes, const StepShape& shape, bool residual_after_norm)
      : TextStepMemory(sizes, shape), is_one_node_(fuses_attention() && !drops() && !residual_after_norm) {}

  void begin_forward(MemoryTape& tape) const override {
    tape.take(row_bytes_);                      // the tokens' rows, kept by the norm
    tape.take(row_bytes_ + statistics_bytes_);  // the first unit's input
  }

  void unit_forward(std::size_t, bool keeps, MemoryTape& tape) const override {
    if (is_one_node_) return node_forward(keeps, tape);
    const std::int64_t rows = row_bytes_;
    const auto unless_kept = [&](std::int64_t bytes) {
      if (!keeps) tape.give(bytes);
    };
    tape.take(rows + statistics_bytes_);  // normed
    unless_kept(statistics_bytes_);
    linear_forward(C_, 3 * C_, tape);  // q, k, v
    attention_forward(keeps, tape);
    linear_forward(C_, C_, tape);  // attended
    if (!keeps || widens_heads()) tape.give(3 * rows);
    unless_kept(rows);  // the context
    dropout_forward(rows, keeps, tape);
    tape.take(2 * rows + statistics_bytes_);  // the sum, and that normed
    unless_kept(statistics_bytes_);
    linear_forward(C_, 4 * C_, tape);
    tape.take(4 * rows);               // the GELU's, only for the product
    linear_forward(4 * C_, C_, tape);  // output
    tape.give(4 * rows);
    unless_kept(4 * rows);
    dropout_forward(rows, keeps, tape);
    tape.give(rows);  // attended
    unless_kept(2 * rows + rows);
  }

  void unit_backward(std::size_t, bool gradient_is_held, MemoryTape& tape) const override {
    if (is_one_node_) return node_backward(gradient_is_held, tape);
    const std::int64_t rows = row_bytes_, C = C_;
    // The incoming gradient also waits for the residual's side.
    const std::int64_t dropped = dropout_backward(rows, tape);
    tape.take(4 * rows);
    tape.pass(product_scratch_bytes(shape_, shape_.num_tokens, C, 4 * C, false));
    tape.take(4 * rows + 4 * C * C * e_);  // the GELU again, and the weight's gradient
    tape.pass(product_scratch_bytes(shape_, C, shape_.num_tokens, 4 * C, true));
    tape.give(4 * rows);
    tape.take(C * e_ + 4 * rows + 4 * C * e_);  // of the product's bias, of the GELU
    tape.give(2 * 4 * rows + dropped);
    tape.hand_over(4 * C);
    tape.hand_over(4 * C * C);
    tape.hand_over(C);
    linear_backward(C, 4 * C, false, 5 * rows, tape);
    norm_backward(gradient_is_held ? 2 * rows : 3 * rows, tape);  // the sum, and the incoming gradients
    const std::int64_t attended = dropout_backward(rows, tape);
    linear_backward(C, C, true, attended, tape);
    attention_backward(tape);
    linear_backward(C, 3 * C, true, 4 * rows, tape);
    norm_backward(2 * rows, tape);  // the unit's input, the gradient
    tape.give(rows);                // added to the residual's
  }

  void begin_backward(MemoryTape& tape) const override {
    norm_backward(2 * row_bytes_, tape);
    look_up_backward(tape);
  }

 private:
  // kernels/cuda_block.cc: the projection, the context, the sum and the GELU's input are kept.
  std::int64_t kept_by_node() const { return (3 + 1 + 1 + 4) * row_bytes_ + 2 * statistics_bytes_ + logsumexp_bytes_; }

  void node_forward(bool keeps, MemoryTape& tape) const {
    tape.take(kept_by_node() + row_bytes_);
    tape.pass(4 * row_bytes_);  // the GELU's result; before it the norms' and attention's
    if (!keeps) tape.give(kept_by_node());
  }

  void node_backward(bool gradient_is_held, MemoryTape& tape) const {
    const std::int64_t rows = row_bytes_, C = C_;
    const auto parameters = {3 * C * C, C * C, 4 * C * C, 4 * C * C, C, C, 3 * C, C, C, C, 4 * C, C};
    for (const std::int64_t numel : parameters) tape.take(numel * e_);
    tape.take(rows);
    const std::int64_t sums = kernels::kMostColumnSums * kernels::num_row_blocks(shape_.num_tokens) * C * kFloatBytes;
    tape.pass(8 * rows + sums + logsumexp_bytes_);
    tape.give(kept_by_node() + rows + (gradient_is_held ? 0 : rows));  // with the unit's input
    for (const std::int64_t numel : parameters) tape.hand_over_in_place(numel);
  }

  const bool is_one_node_;
};

}  // namespace

std::unique_ptr<StepMemory> bloom_step_memory(const Json& config, const std::string& origin, const StepShape& shape) {
  const BloomConfig c = BloomConfig::from_json(config, origin);
  TextStepMemory::Sizes sizes{c.vocab_size, c.hidden_size, c.num_layers, c.num_heads};
  sizes.has_alibi = sizes.has_last_norm = true;
  sizes.is_tied = c.tie_word_embeddings;
  sizes.dropout = c.hidden_dropout;
  sizes.attention_dropout = c.attention_dropout;
  return std::make_unique<BloomStepMemory>(sizes, shape, c.residual_after_norm);
}

}  // namespace tessera
