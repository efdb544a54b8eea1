// Shape letters: T tokens of all sequences, C hidden size, H heads, head size D.
#include "model/bloom.h"

#include <ATen/ops/linear.h>
#include <fmt/format.h>

#include <cmath>

#include "kernels/bias_gelu.h"
#include "kernels/layer_norm.h"
#include "kernels/transformer_block.h"
#include "model/step_memory.h"

namespace tessera {

namespace {

class BloomBlock : public LanguageBlock {
 public:
  BloomBlock(const BloomConfig& config, const at::TensorOptions& options) : config_(config) {
    const std::int64_t C = config.hidden_size;
    input_norm_ = add_affine(*this, "input_layernorm", {C}, true, options);
    const auto attention = register_module("self_attention", std::make_shared<NameLevel>());
    query_key_value_ = add_affine(*attention, "query_key_value", {3 * C, C}, true, options);
    dense_ = add_affine(*attention, "dense", {C, C}, true, options);
    attention_norm_ = add_affine(*this, "post_attention_layernorm", {C}, true, options);
    const auto mlp = register_module("mlp", std::make_shared<NameLevel>());
    up_ = add_affine(*mlp, "dense_h_to_4h", {4 * C, C}, true, options);
    down_ = add_affine(*mlp, "dense_4h_to_h", {C, 4 * C}, true, options);
  }

  at::Tensor forward(const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const override {
    if (is_one_node(x, attend, keys)) return kernels::transformer_block(x, as_node(), *attend.packed);
    const double epsilon = config_.layer_norm_epsilon;
    const at::Tensor normed = kernels::layer_norm(x, input_norm_->weight, input_norm_->bias, epsilon);
    const at::Tensor attended = dropout(self_attention(normed, attend), config_.hidden_dropout, keys, 1);
    const auto [sum, normed_sum] = kernels::residual_layer_norm(
        attended, config_.residual_after_norm ? normed : x, attention_norm_->weight, attention_norm_->bias, epsilon);
    // The bias is fused with the GELU: one pass over [T, 4 C].
    at::Tensor output =
        kernels::bias_gelu_linear(at::linear(normed_sum, up_->weight), up_->bias, down_->weight, down_->bias);
    output = dropout(output, config_.hidden_dropout, keys, 2);
    // In place: no product is kept for its gradient.
    return output.add_(config_.residual_after_norm ? normed_sum : sum);
  }

 private:
  at::Tensor self_attention(const at::Tensor& normed, const Attend& attend) const {
    const std::int64_t T = normed.size(0), H = config_.num_heads;
    // Each head's q, k and v are adjacent: [T, H, 3, D].
    const at::Tensor qkv =
        at::linear(normed, query_key_value_->weight, query_key_value_->bias).view({T, H, 3, config_.head_dim()});
    const at::Tensor context = attend(qkv, /*parts_dim=*/2).view({T, config_.hidden_size});
    return at::linear(context, dense_->weight, dense_->bias);
  }

  bool is_one_node(const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const {
    const bool drops = keys.active() && config_.hidden_dropout > 0;
    return attend.packed && !drops && !config_.residual_after_norm &&
           kernels::transformer_block_serves(x, config_.num_heads, *attend.packed);
  }

  kernels::TransformerBlock as_node() const {
    return {input_norm_->weight,
            input_norm_->bias,
            query_key_value_->weight,
            query_key_value_->bias,
            dense_->weight,
            dense_->bias,
            attention_norm_->weight,
            attention_norm_->bias,
            up_->weight,
            up_->bias,
            down_->weight,
            down_->bias,
            config_.num_heads,
            config_.layer_norm_epsilon};
  }

  BloomConfig config_;
  std::shared_ptr<Affine> input_norm_, query_key_value_, dense_, attention_norm_, up_, down_;
};

// What the code above keeps and takes.
class BloomStepMemory : public TextStepMemory {
 public:
  BloomStepMemory(const Sizes& sizes, const StepShape& shape, bool residual_after_norm)
      : TextStepMemory(sizes, shape), is_one_node_(attention_case_.is_fused() && !drops() && !residual_after_norm) {}

  void begin_forward(MemoryTape& tape) const override {
    tape.take(row_bytes_);                      // the tokens' rows, kept by the norm
    tape.take(row_bytes_ + statistics_bytes_);  // the first unit's input
  }

  void unit_forward(std::size_t, bool keeps, MemoryTape& tape) const override {
    if (is_one_node_) return node_forward(keeps, tape);
    const std::int64_t rows = row_bytes_;
    tape.take(rows + statistics_bytes_);  // normed
    tape.give_unless(keeps, statistics_bytes_);
    linear_forward(C_, 3 * C_, tape);  // q, k, v
    attention_forward(keeps, tape);
    linear_forward(C_, C_, tape);  // attended
    if (!keeps || widens_heads()) tape.give(3 * rows);
    tape.give_unless(keeps, rows);  // the context
    dropout_forward(rows, keeps, tape);
    tape.take(2 * rows + statistics_bytes_);  // the sum, and that normed
    tape.give_unless(keeps, statistics_bytes_);
    linear_forward(C_, 4 * C_, tape);
    tape.take(4 * rows);               // the GELU's, only for the product
    linear_forward(4 * C_, C_, tape);  // output
    tape.give(4 * rows);
    tape.give_unless(keeps, 4 * rows);
    dropout_forward(rows, keeps, tape);
    tape.give(rows);  // attended
    tape.give_unless(keeps, 2 * rows + rows);
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
  kernels::TransformerBlockBytes node() const {
    return kernels::transformer_block_bytes(shape_.num_tokens, C_, row_bytes_, statistics_bytes_, attention_.logsumexp);
  }

  void node_forward(bool keeps, MemoryTape& tape) const {
    tape.take(node().kept + row_bytes_);
    tape.pass(node().forward);
    if (!keeps) tape.give(node().kept);
  }

  void node_backward(bool gradient_is_held, MemoryTape& tape) const {
    const std::int64_t rows = row_bytes_, C = C_;
    const auto parameters = {3 * C * C, C * C, 4 * C * C, 4 * C * C, C, C, 3 * C, C, C, C, 4 * C, C};
    for (const std::int64_t numel : parameters) tape.take(numel * e_);
    tape.take(rows);
    tape.pass(node().backward);
    tape.give(node().kept + rows + (gradient_is_held ? 0 : rows));  // with the unit's input
    for (const std::int64_t numel : parameters) tape.hand_over_in_place(numel);
  }

  const bool is_one_node_;
};

}  // namespace

BloomConfig BloomConfig::from_json(const Json& config, const std::string& origin) {
  const JsonSource source{&config, origin};
  const JsonReader reader(source);
  BloomConfig c;
  c.vocab_size = reader.integer({"vocab_size"}, 1, kMaxVocabSize, c.vocab_size);
  c.hidden_size = reader.integer({"hidden_size", "n_embed"}, 1, kMaxHiddenSize, c.hidden_size);
  c.num_layers = reader.integer({"n_layer", "num_hidden_layers"}, 1, kMaxLayers, c.num_layers);
  c.num_heads = reader.integer({"n_head", "num_attention_heads"}, 1, kMaxHiddenSize, c.num_heads);
  c.read_rest(reader);
  if (const std::int64_t inner = reader.integer({"n_inner"}, 1, 4 * kMaxHiddenSize, 4 * c.hidden_size);
      inner != 4 * c.hidden_size) {
    reader.refuse_member("n_inner",
                         fmt::format("expected BLOOM's 4 x hidden_size = {}, found {}", 4 * c.hidden_size, inner));
  }
  c.hidden_dropout = reader.real({"hidden_dropout"}, 0, kMaxDropout, c.hidden_dropout);
  c.attention_dropout = reader.real({"attention_dropout"}, 0, kMaxDropout, c.attention_dropout);
  c.residual_after_norm = reader.boolean({"apply_residual_connection_post_layernorm"}, c.residual_after_norm);
  c.tie_word_embeddings = reader.boolean({"tie_word_embeddings"}, c.tie_word_embeddings);
  const std::int64_t split = reader.integer({"pretraining_tp"}, 1, kMaxHiddenSize, 1);
  if (reader.boolean({"slow_but_exact"}, false) && split > 1) {
    reader.refuse_member(
        "slow_but_exact",
        fmt::format("true with \"pretraining_tp\" {}: Tessera does not split layers to reproduce the rounding "
                    "of the original training; set it to false",
                    split));
  }
  return c;
}

Json BloomConfig::to_json() const {
  return {{"architectures", {"BloomForCausalLM"}},
          {"model_type", "bloom"},
          {"vocab_size", vocab_size},
          {"hidden_size", hidden_size},
          {"n_layer", num_layers},
          {"n_head", num_heads},
          {"layer_norm_epsilon", layer_norm_epsilon},
          {"initializer_range", initializer_range},
          {"hidden_dropout", hidden_dropout},
          {"attention_dropout", attention_dropout},
          {"apply_residual_connection_post_layernorm", residual_after_norm},
          {"tie_word_embeddings", tie_word_embeddings},
          {"slow_but_exact", false},
          {"pretraining_tp", 1}};
}

Bloom::Bloom(const BloomConfig& config, const at::TensorOptions& options) : LanguageModel(config, config.to_json()) {
  const std::vector<std::int64_t> table{config.vocab_size, config.hidden_size}, vector{config.hidden_size};
  const auto root = register_module("transformer", std::make_shared<NameLevel>());
  embedding_ = add_affine(*root, "word_embeddings", table, false, options);
  embedding_norm_ = add_affine(*root, "word_embeddings_layernorm", vector, true, options);
  const auto list = root->register_module("h", std::make_shared<NameLevel>());
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    add_block(*list, "transformer.h.", "BloomBlock", std::make_shared<BloomBlock>(config, options));
  }
  last_norm_ = add_affine(*root, "ln_f", vector, true, options);
  base_prefix_ = "transformer";
  if (config.tie_word_embeddings) {
    tied_names_ = {{"lm_head.weight", "transformer.word_embeddings.weight"}};
  } else {
    head_ = add_affine(*this, "lm_head", table, false, options);
  }
}

at::Tensor Bloom::embed(const at::Tensor& ids, const at::Tensor&, const at::Tensor& table, bool is_tied) const {
  const at::Tensor tokens = look_up(table, ids, is_tied);
  return kernels::layer_norm(tokens, embedding_norm_->weight, embedding_norm_->bias, shape().layer_norm_epsilon);
}

std::vector<float> alibi_slopes(std::int64_t num_heads) {
  std::int64_t whole = 1;  // the largest power of two up to num_heads
  while (whole * 2 <= num_heads) whole *= 2;
  const auto slope = [](std::int64_t heads, std::int64_t power) {
    // The base is rounded to float before it is raised, as the original's tensors are.
    const auto base = static_cast<float>(std::exp2(-8.0 / static_cast<double>(heads)));
    return static_cast<float>(std::pow(static_cast<double>(base), static_cast<double>(power)));
  };
  std::vector<float> slopes;
  for (std::int64_t i = 1; i <= whole; ++i) slopes.push_back(slope(whole, i));
  for (std::int64_t i = 1; i <= num_heads - whole; ++i) slopes.push_back(slope(2 * whole, 2 * i - 1));
  return slopes;
}

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
