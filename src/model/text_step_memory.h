// The common part of the text models' StepMemory: attention, linear layers, norms and the head.
//
// Letters: T tokens, C hidden size, H heads, head size D, V vocabulary; the bytes of [T, C] in the compute type are one
// `row_bytes_`. Each function follows the code it describes line by line: if that code changes, the planner's tests
// (tests/parallel/peak_test.cc) fail.
#pragma once

#include "model/step_memory.h"

namespace tessera {

class TextStepMemory : public StepMemory {
 public:
  struct Sizes {
    std::int64_t vocab_size = 0, hidden_size = 0, num_layers = 0, num_heads = 0;
    bool has_alibi = false, is_tied = true, has_head_bias = false, has_last_norm = false;
    double dropout = 0;  // of hidden states
    double attention_dropout = 0;
  };
  TextStepMemory(const Sizes& sizes, const StepShape& shape);

  std::size_t num_units() const override { return static_cast<std::size_t>(sizes_.num_layers); }
  std::int64_t input_bytes(std::size_t) const override { return row_bytes_; }
  std::int64_t output_bytes(std::size_t) const override { return row_bytes_; }
  void end_forward(MemoryTape& tape) const override;
  void end_backward(MemoryTape& tape) const override;

 protected:
  bool drops() const { return shape_.training && sizes_.dropout > 0; }
  // What a dropout of `bytes` in the compute type keeps.
  std::int64_t mask_bytes(std::int64_t bytes) const {
    return !drops() ? 0 : shape_.on_gpu ? bytes / shape_.element_bytes : bytes;
  }
  // The result of a dropout replaces its input, which is released; the mask stays if gradients are needed.
  void dropout_forward(std::int64_t bytes, bool keeps, MemoryTape& tape) const;
  // The gradient before the dropout, beside the incoming one, which the caller gives back; 0 without dropout.
  std::int64_t dropout_backward(std::int64_t bytes, MemoryTape& tape) const;

  // q, k, v (3 rows) exist already; takes the context (1 row) and what softmax needs for backward.
  void attention_forward(bool keeps, MemoryTape& tape) const;
  // From the context's gradient, which it gives back, to the fused projection's (3 rows); gives back all that was kept.
  void attention_backward(MemoryTape& tape) const;
  bool widens_heads() const { return wide_row_bytes_ != row_bytes_; }
  // On a GPU: kernels/attention.cu.
  bool fuses_attention() const;

  // [T, in] to [T, out].
  void linear_forward(std::int64_t in, std::int64_t out, MemoryTape& tape) const;
  // Takes the gradients of input, weight and bias; gives back `gone_bytes`: the output's gradient and what was kept.
  void linear_backward(std::int64_t in, std::int64_t out, bool has_bias, std::int64_t gone_bytes,
                       MemoryTape& tape) const;
  // Takes the input's gradient; gives back `gone_bytes` (what was normalised, incoming gradients) and the statistics.
  void norm_backward(std::int64_t gone_bytes, MemoryTape& tape) const;

  void look_up_backward(MemoryTape& tape) const;  // from the rows' gradient, which it gives back

  const Sizes sizes_;
  const StepShape shape_;
  const std::int64_t e_, C_;
  const std::int64_t row_bytes_;         // [T, C]
  const std::int64_t statistics_bytes_;  // mean and deviation of a norm, float32
  const std::int64_t logsumexp_bytes_;   // [H, T] float32

 private:
  void head_forward(MemoryTape& tape) const;
  void head_chunk(std::int64_t rows, MemoryTape& tape) const;
  void head_chunk_in_parts(std::int64_t rows, MemoryTape& tape) const;
  std::int64_t table_bytes() const { return sizes_.vocab_size * C_ * e_; }
  std::int64_t bias_bytes() const { return sizes_.has_head_bias ? sizes_.vocab_size * e_ : 0; }

  std::int64_t wide_row_bytes_;  // [T, H, D and ALiBi's parts]: what FlashAttention takes
};

// bloom_step_memory.cc, gpt_step_memory.cc
std::unique_ptr<StepMemory> bloom_step_memory(const Json& config, const std::string& origin, const StepShape& shape);
std::unique_ptr<StepMemory> gpt_step_memory(const Json& config, const std::string& origin, const StepShape& shape);

}  // namespace tessera
