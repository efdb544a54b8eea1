// What a decoder's blocks keep and take (decoder_block.cc; as one node gated_block_memory.cc), and its parts, head and
// embedding (decoder_parts_memory.cc). If that code changes, the planner's tests (tests/model/step_memory_test.cc,
// tests/parallel/peak_test.cc) fail.
//
// Letters: T tokens, C hidden size, F inner size, H heads, D head size, Q = H D and K of keys, V vocabulary; the bytes
// of [T, C] in the compute type are one `row_bytes_`.
#pragma once

#include <vector>

#include "model/decoder_shape.h"
#include "model/step_memory.h"

namespace tessera {

class DecoderStepMemory : public StepMemory {
 public:
  DecoderStepMemory(const DecoderDescription& decoder, const StepShape& shape);

  std::size_t num_units() const override { return static_cast<std::size_t>(decoder_.num_layers); }
  std::int64_t input_bytes(std::size_t) const override { return row_bytes_; }
  std::int64_t output_bytes(std::size_t) const override { return row_bytes_; }
  void begin_forward(MemoryTape& tape) const override;
  void unit_forward(std::size_t unit, bool keeps, MemoryTape& tape) const override;
  void end_forward(MemoryTape& tape) const override;
  void end_backward(MemoryTape& tape) const override;
  void unit_backward(std::size_t unit, bool gradient_is_held, MemoryTape& tape) const override;
  void begin_backward(MemoryTape& tape) const override;

 private:
  bool drops(double probability) const { return shape_.training && probability > 0; }
  // What a dropout of `bytes` in the compute type keeps.
  std::int64_t mask_bytes(std::int64_t bytes) const { return shape_.on_gpu ? bytes / e_ : bytes; }
  // The result of a dropout replaces its input, which is released; the mask stays if gradients are needed.
  void dropout_forward(double probability, std::int64_t bytes, bool keeps, MemoryTape& tape) const;
  // The gradient before the dropout, beside the incoming one, which the caller gives back; 0 without dropout.
  std::int64_t dropout_backward(double probability, std::int64_t bytes, MemoryTape& tape) const;

  // The projections to q, k and v, their norms and rotation.
  void qkv_forward(bool keeps, MemoryTape& tape) const;
  // From the gradients of q, k and v to the block's input's, or its norm's; gives back `gone_bytes` at the end.
  void qkv_backward(std::int64_t gone_bytes, MemoryTape& tape) const;
  // Takes the context and what softmax needs for backward.
  void attention_forward(bool keeps, MemoryTape& tape) const;
  // From the context's gradient, which it gives back, to q's, k's and v's; gives back all that was kept.
  void attention_backward(MemoryTape& tape) const;
  bool widens_heads() const { return attention_.wide != 0; }
  void mlp_forward(bool keeps, MemoryTape& tape) const;
  // From the result's gradient, which it gives back with `gone_bytes`, to that of what the MLP read.
  void mlp_backward(std::int64_t gone_bytes, MemoryTape& tape) const;
  void bias_gelu_backward(std::int64_t gone_bytes, MemoryTape& tape) const;
  void gated_backward(std::int64_t gone_bytes, MemoryTape& tape) const;
  void relu_backward(std::int64_t gone_bytes, MemoryTape& tape) const;

  // [T, in] to [T, out].
  void linear_forward(std::int64_t in, std::int64_t out, MemoryTape& tape) const;
  // Takes the gradients of input, weight and bias; gives back `gone_bytes`: the output's gradient and what was kept.
  void linear_backward(std::int64_t in, std::int64_t out, bool has_bias, std::int64_t gone_bytes,
                       MemoryTape& tape) const;
  // The result, and what is kept of `num_rows` rows.
  void norm_forward(std::int64_t bytes, std::int64_t num_rows, bool keeps, MemoryTape& tape) const;
  // Takes the input's gradient; gives back `gone_bytes` (what was normalised, incoming gradients) and the statistics.
  void norm_backward(std::int64_t bytes, std::int64_t num_rows, std::int64_t width, std::int64_t gone_bytes,
                     MemoryTape& tape) const;
  void row_norm_backward(std::int64_t gone_bytes, MemoryTape& tape) const {
    norm_backward(row_bytes_, shape_.num_tokens, C_, gone_bytes, tape);
  }
  std::int64_t statistics_bytes(std::int64_t num_rows) const;
  std::int64_t bytes_of(std::int64_t width) const { return shape_.num_tokens * width * e_; }

  // A block as one node (gated_block_memory.cc).
  struct GatedLayer;
  // Gradients of parameters that have been computed; on a CPU the node gives them early.
  struct HandOver {
    const DecoderStepMemory& step;
    MemoryTape& tape;
    std::vector<std::int64_t> waiting;

    void take(std::int64_t numel);
    void on_cpu();
    void all();
  };
  GatedLayer gated_layer(std::size_t unit) const;
  void gated_node_forward(std::size_t unit, bool keeps, MemoryTape& tape) const;
  void gated_heads_forward(const GatedLayer& layer, MemoryTape& tape) const;
  void gated_heads_read(const GatedLayer& layer, bool keeps, MemoryTape& tape) const;
  void gated_node_backward(std::size_t unit, bool gradient_is_held, MemoryTape& tape) const;
  void gated_mlp_backward(HandOver& gradients) const;
  void gated_attention_backward(const GatedLayer& layer, HandOver& gradients) const;
  void gated_projections_backward(HandOver& gradients) const;
  void gated_places(std::int64_t in, std::int64_t out, bool has_bias, HandOver& gradients) const;
  void gated_norm_backward(std::int64_t bytes, std::int64_t num_rows, std::int64_t width, HandOver& gradients) const;

  void node_forward(bool keeps, MemoryTape& tape) const;
  void node_backward(bool gradient_is_held, MemoryTape& tape) const;

  void head_forward(MemoryTape& tape) const;
  void head_chunk(std::int64_t rows, MemoryTape& tape) const;
  void head_chunk_in_parts(std::int64_t rows, MemoryTape& tape) const;
  std::int64_t table_bytes() const { return decoder_.vocab_size * C_ * e_; }
  std::int64_t bias_bytes() const { return decoder_.has_head_bias ? decoder_.vocab_size * e_ : 0; }

  const DecoderShape decoder_;
  const DecoderNames names_;
  const StepShape shape_;
  const std::int64_t e_, C_, F_, Q_, K_;
  const std::int64_t row_bytes_;         // [T, C]
  const std::int64_t statistics_bytes_;  // of a norm of [T, C], float32
  const bool rotates_, is_separate_;
  const kernels::AttentionSizes attention_case_;
  const kernels::AttentionBytes attention_;
  const bool is_one_node_, is_gated_node_;
};

}  // namespace tessera
