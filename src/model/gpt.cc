// Shape letters: T tokens of all sequences, C hidden size, H heads, head size D.
#include "model/gpt.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

#include "kernels/layer_norm.h"
#include "model/step_memory.h"

namespace tessera {

namespace {

class EncoderLayer : public LanguageBlock {
 public:
  EncoderLayer(const GptConfig& config, const at::TensorOptions& options) : config_(config) {
    const std::int64_t C = config.hidden_size;
    const auto attention = register_module("self_attn", std::make_shared<NameLevel>());
    in_weight_ = attention->register_parameter("in_proj_weight", at::empty({3 * C, C}, options));
    in_bias_ = attention->register_parameter("in_proj_bias", at::empty({3 * C}, options));
    out_ = add_affine(*attention, "out_proj", {C, C}, true, options);
    linear1_ = add_affine(*this, "linear1", {config.ff_dim, C}, true, options);
    linear2_ = add_affine(*this, "linear2", {C, config.ff_dim}, true, options);
    norm1_ = add_affine(*this, "norm1", {C}, true, options);
    norm2_ = add_affine(*this, "norm2", {C}, true, options);
  }

  at::Tensor forward(const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const override {
    const double p = config_.dropout;
    const at::Tensor attended = dropout(self_attention(x, attend), p, keys, 1);
    const at::Tensor middle = add_and_norm(attended, x, *norm1_);
    at::Tensor inner = at::linear(middle, linear1_->weight, linear1_->bias);
    inner = dropout(inner.relu_(), p, keys, 2);  // in place: no product is kept for its gradient
    return add_and_norm(dropout(at::linear(inner, linear2_->weight, linear2_->bias), p, keys, 3), middle, *norm2_);
  }

 private:
  at::Tensor add_and_norm(const at::Tensor& x, const at::Tensor& residual, const Affine& norm) const {
    return kernels::residual_layer_norm(x, residual, norm.weight, norm.bias, config_.layer_norm_epsilon).second;
  }

  at::Tensor self_attention(const at::Tensor& x, const Attend& attend) const {
    const std::int64_t T = x.size(0);
    // All heads' q, then all heads' k and v: [T, 3, H, D].
    const at::Tensor qkv = at::linear(x, in_weight_, in_bias_).view({T, 3, config_.num_heads, config_.head_dim()});
    const at::Tensor context = attend(qkv, /*parts_dim=*/1).view({T, config_.hidden_size});
    return at::linear(context, out_->weight, out_->bias);
  }

  GptConfig config_;
  at::Tensor in_weight_, in_bias_;
  std::shared_ptr<Affine> out_, linear1_, linear2_, norm1_, norm2_;
};

// What the code above keeps and takes.
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
    linear_forward(C_, 3 * C_, tape);  // q, k, v
    attention_forward(keeps, tape);
    linear_forward(C_, C_, tape);  // attended
    if (!keeps || widens_heads()) tape.give(3 * rows);
    tape.give_unless(keeps, rows);  // the context
    dropout_forward(rows, keeps, tape);
    tape.take(2 * rows + statistics_bytes_);  // the sum, and that normed
    tape.give_unless(keeps, rows + statistics_bytes_);
    linear_forward(C_, F_, tape);  // the ReLU is in place
    if (drops()) {
      tape.take(mask_bytes(inner_bytes_) + inner_bytes_);
      tape.give_unless(keeps, mask_bytes(inner_bytes_) + inner_bytes_);
    }
    linear_forward(F_, C_, tape);
    dropout_forward(rows, keeps, tape);
    tape.take(2 * rows + statistics_bytes_);  // the second sum, and the output
    tape.give_unless(keeps, rows + statistics_bytes_);
    tape.give(2 * rows);  // attended, and the inputs of the second sum
    tape.give_unless(keeps, inner_bytes_ + rows);
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

LanguageModelShape shape_of(const GptConfig& config) {
  LanguageModelShape shape = config;
  if (config.learned_positions) shape.max_positions = config.seq_length;
  shape.attention_dropout = config.dropout;
  return shape;
}

}  // namespace

GptConfig GptConfig::from_json(const Json& config, const std::string& origin) {
  const JsonSource source{&config, origin};
  const JsonReader reader(source);
  GptConfig c;
  c.vocab_size = reader.integer({"vocab_size"}, 1, kMaxVocabSize);
  c.hidden_size = reader.integer({"hidden_size"}, 1, kMaxHiddenSize);
  c.num_layers = reader.integer({"num_layers"}, 1, kMaxLayers);
  c.num_heads = reader.integer({"num_heads"}, 1, kMaxHiddenSize);
  c.ff_dim = reader.integer({"ff_dim"}, 1, 16 * kMaxHiddenSize);
  c.seq_length = reader.integer({"seq_length"}, 1, std::int64_t{1} << 24, c.seq_length);
  c.read_rest(reader);
  const std::string positions = reader.text({"positions"}, "none");
  if (positions != "none" && positions != "learned") {
    reader.at("positions").refuse_value("\"none\" or \"learned\"");
  }
  c.learned_positions = positions == "learned";
  c.dropout = reader.real({"dropout"}, 0, kMaxDropout, c.dropout);
  return c;
}

Json GptConfig::to_json() const {
  return {{"model_type", "tessera-gpt"},
          {"vocab_size", vocab_size},
          {"hidden_size", hidden_size},
          {"num_layers", num_layers},
          {"num_heads", num_heads},
          {"ff_dim", ff_dim},
          {"seq_length", seq_length},
          {"positions", learned_positions ? "learned" : "none"},
          {"dropout", dropout},
          {"layer_norm_epsilon", layer_norm_epsilon},
          {"initializer_range", initializer_range},
          {"tie_word_embeddings", true}};
}

Gpt::Gpt(const GptConfig& config, const at::TensorOptions& options)
    : LanguageModel(shape_of(config), config.to_json()) {
  const std::int64_t C = config.hidden_size;
  embedding_ = add_affine(*this, "embedding", {config.vocab_size, C}, false, options);
  if (config.learned_positions) positions_ = add_affine(*this, "positions", {config.seq_length, C}, false, options);
  const auto list = register_module("layers", std::make_shared<NameLevel>());
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    add_block(*list, "layers.", "TransformerEncoderLayer", std::make_shared<EncoderLayer>(config, options));
  }
  const auto head = register_module("head", std::make_shared<NameLevel>());
  head_bias_ = head->register_parameter("bias", at::empty({config.vocab_size}, options));
  tied_names_ = {{"head.weight", "embedding.weight"}};
}

at::Tensor Gpt::embed(const at::Tensor& ids, const at::Tensor& positions, const at::Tensor& table, bool is_tied) const {
  const at::Tensor tokens = look_up(table, ids, is_tied);
  return positions_ ? tokens + look_up(positions_->weight, positions, false) : tokens;
}

std::unique_ptr<StepMemory> gpt_step_memory(const Json& config, const std::string& origin, const StepShape& shape) {
  const GptConfig c = GptConfig::from_json(config, origin);
  TextStepMemory::Sizes sizes{c.vocab_size, c.hidden_size, c.num_layers, c.num_heads};
  sizes.has_head_bias = true;
  sizes.dropout = sizes.attention_dropout = c.dropout;
  return std::make_unique<GptStepMemory>(sizes, shape, c.ff_dim, c.learned_positions ? c.seq_length : 0);
}

}  // namespace tessera
