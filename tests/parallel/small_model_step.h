// The memory that a step of small_model.cc takes.
#pragma once

#include "model/step_memory.h"
#include "parallel/small_model.h"

namespace tessera {

class SmallModelStep : public StepMemory {
 public:
  // Block number `frozen` has a parameter that is not trained.
  SmallModelStep(std::size_t num_blocks, std::size_t frozen, const StepShape& shape)
      : num_blocks_(num_blocks), frozen_(frozen), shape_(shape) {}

  std::size_t num_units() const override { return num_blocks_; }
  std::int64_t input_bytes(std::size_t) const override { return rows(kW); }
  std::int64_t output_bytes(std::size_t) const override { return rows(kW); }

  void begin_forward(MemoryTape& tape) const override { tape.take(rows(kW)); }

  void unit_forward(std::size_t, bool keeps, MemoryTape& tape) const override {
    linear(kW, kI, tape);
    tape.take(rows(kI));  // ReLU
    linear(kI, kW, tape);
    tape.take(2 * rows(kW));             // both sums
    tape.give(rows(kI) + 2 * rows(kW));  // all but the ReLU's result and the last sum
    if (!keeps) tape.give(rows(kI));
  }

  void unit_backward(std::size_t unit, bool gradient_is_held, MemoryTape& tape) const override {
    if (unit != frozen_) {
      tape.take(kW * e());
      tape.hand_over(kW);
    }
    linear_backward(kI, kW, false, 0, tape);
    tape.take(rows(kI));
    tape.give(2 * rows(kI));
    linear_backward(kW, kI, true, rows(kI) + rows(kW), tape);
    if (!gradient_is_held) tape.give(rows(kW));  // added to the residual's
  }

  void end_forward(MemoryTape& tape) const override {
    tape.take(rows(kW));  // scaled
    linear(kW, kV, tape);
    if (is_half()) tape.take(float_logits()), tape.give(rows(kV));
    tape.take(float_logits());  // log-softmax
    tape.give(float_logits());
  }

  void end_backward(MemoryTape& tape) const override {
    tape.take(2 * float_logits());  // gradients of the loss and of the log-softmax
    tape.give(2 * float_logits());
    if (is_half()) tape.take(rows(kV)), tape.give(float_logits());
    // The table's gradient waits for the embedding's.
    tape.take(rows(kW));
    tape.pass(product_scratch_bytes(shape_, T(), kV, kW, false));
    tape.take(kV * kW * e());
    tape.pass(product_scratch_bytes(shape_, kV, T(), kW, true));
    tape.give(rows(kV) + rows(kW));
    tape.take(rows(kW));  // gradient of the product's one factor; then the other's, before it is summed
    tape.pass(rows(kW));
    tape.give(2 * rows(kW));
    tape.take(e());
    tape.hand_over(1);
  }

  void begin_backward(MemoryTape& tape) const override {
    tape.pass(kV * kW * e());
    tape.hand_over(kV * kW);
    tape.give(rows(kW));
  }

 private:
  static constexpr std::int64_t kV = SmallModel::kVocabulary, kW = SmallModel::kWidth, kI = SmallModel::kInner;

  std::int64_t T() const { return shape_.num_tokens; }
  std::int64_t e() const { return shape_.element_bytes; }
  bool is_half() const { return e() == 2; }
  std::int64_t rows(std::int64_t width) const { return T() * width * e(); }
  std::int64_t float_logits() const { return T() * kV * 4; }

  void linear(std::int64_t in, std::int64_t out, MemoryTape& tape) const {
    tape.take(rows(out));
    tape.pass(product_scratch_bytes(shape_, T(), in, out, false));
  }
  void linear_backward(std::int64_t in, std::int64_t out, bool has_bias, std::int64_t gone_bytes,
                       MemoryTape& tape) const {
    tape.take(rows(in));
    tape.pass(product_scratch_bytes(shape_, T(), out, in, false));
    tape.take(in * out * e());
    tape.pass(product_scratch_bytes(shape_, out, T(), in, true));
    if (has_bias) tape.take(out * e());
    tape.give(gone_bytes);
    if (has_bias) tape.hand_over(out);
    tape.hand_over(in * out);
  }

  std::size_t num_blocks_, frozen_;
  StepShape shape_;
};

}  // namespace tessera
