// The memory use of model/gpt.cc.
#include "model/gpt_config.h"
#include "model/text_step_memory.h"

namespace tessera {
namespace {

class GptStepMemory : public TextStepMemory {
 public:
  GptStepMemory(const Sizes& sizes, const StepShape& shape, std::int64_t ff_dim, std::int64_t num_positions)
      : TextStepMemory(sizes, shape),
        F_(ff_dim),
        inner_bytes_(shape.num_tokens * ff_dim * shape.element_bytes),
        num_positions_(num_positions) {}

  void begin_forward(MemoryTape& tape) const override {
    tape.take(row_bytes_);
    if (num_positions_ == 0) return;
    tape.take(2 * row_bytes_);  // the positions' rows, and the sum
    tape.give(2 * row_bytes_);
  }

  void unit_forward(std::size_t, bool keeps, MemoryTape& tape) const override {
    const std::int64_t rows = row_bytes_;
    const auto unless_kept = [&](std::int64_t bytes) {
      if (!keeps) tape.give(bytes);
    };
    linear_forward(C_, 3 * C_, tape);  // q, k, v
    attention_forward(keeps, tape);
    linear_forward(C_, C_, tape);  // attended
    if (!keeps || widens_heads()) tape.give(3 * rows);
    unless_kept(rows);  // the context
    dropout_forward(rows, keeps, tape);
    tape.take(2 * rows + statistics_bytes_);  // the sum, and that normed
    unless_kept(rows + statistics_bytes_);
    linear_forward(C_, F_, tape);  // the ReLU is in place
    if (drops()) {
      tape.take(mask_bytes(inner_bytes_) + inner_bytes_);
      unless_kept(mask_bytes(inner_bytes_) + inner_bytes_);
    }
    linear_forward(F_, C_, tape);
    dropout_forward(rows, keeps, tape);
    tape.take(2 * rows + statistics_bytes_);  // the second sum, and the output
    unless_kept(rows + statistics_bytes_);
    tape.give(2 * rows);  // attended, and the inputs of the second sum
    unless_kept(inner_bytes_ + rows);
  }

  void unit_backward(std::size_t, bool gradient_is_held, MemoryTape& tape) const override {
    const std::int64_t rows = row_bytes_, C = C_;
    norm_backward(gradient_is_held ? rows : 2 * rows, tape);  // the second sum, the incoming gradient
    // The ReLU keeps its result itself; only the linear layer keeps a dropout's result.
    const std::int64_t dropped = dropout_backward(rows, tape);
    linear_backward(F_, C, true, dropped + (drops() ? inner_bytes_ : 0), tape);
    if (drops()) tape.give(dropout_backward(inner_bytes_, tape));
    tape.take(inner_bytes_);  // of the ReLU
    tape.give(2 * inner_bytes_);
    linear_backward(C, F_, true, inner_bytes_ + rows, tape);
    tape.give(rows);                // added to the residual's
    norm_backward(2 * rows, tape);  // the first sum, the gradient
    const std::int64_t attended = dropout_backward(rows, tape);
    linear_backward(C, C, true, attended, tape);
    attention_backward(tape);
    linear_backward(C, 3 * C, true, 4 * rows, tape);  // with the unit's input
    tape.give(rows);                                  // added to the residual's
  }

  void begin_backward(MemoryTape& tape) const override {
    if (num_positions_ > 0) {
      tape.take(num_positions_ * C_ * e_);
      tape.hand_over(num_positions_ * C_);
    }
    look_up_backward(tape);
  }

 private:
  const std::int64_t F_, inner_bytes_;
  const std::int64_t num_positions_;  // learned; 0: none
};

}  // namespace

std::unique_ptr<StepMemory> gpt_step_memory(const Json& config, const std::string& origin, const StepShape& shape) {
  const GptConfig c = GptConfig::from_json(config, origin);
  TextStepMemory::Sizes sizes{c.vocab_size, c.hidden_size, c.num_layers, c.num_heads};
  sizes.has_head_bias = true;
  sizes.dropout = sizes.attention_dropout = c.dropout;
  return std::make_unique<GptStepMemory>(sizes, shape, c.ff_dim, c.learned_positions ? c.seq_length : 0);
}

}  // namespace tessera
