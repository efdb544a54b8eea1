// Shape letters: T tokens of all sequences, C hidden size, H heads, head size D.
#include "model/bloom.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>

#include "kernels/bias_gelu.h"
#include "kernels/layer_norm.h"
#include "kernels/transformer_block.h"
#include "model/alibi.h"
#include "model/tied_table.h"

namespace tessera {

class BloomBlock : public torch::nn::Module {
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

  at::Tensor forward(const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const {
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

Bloom::Bloom(const BloomConfig& config, const at::TensorOptions& options)
    : LanguageModel({config.vocab_size, config.hidden_size, config.num_layers, config.num_heads, std::nullopt,
                     config.attention_dropout}),
      config_(config) {
  const std::vector<std::int64_t> table{config.vocab_size, config.hidden_size}, vector{config.hidden_size};
  const auto root = register_module("transformer", std::make_shared<NameLevel>());
  embedding_ = add_affine(*root, "word_embeddings", table, false, options);
  embedding_norm_ = add_affine(*root, "word_embeddings_layernorm", vector, true, options);
  const auto list = root->register_module("h", std::make_shared<NameLevel>());
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    const std::string index = std::to_string(i);
    blocks_.push_back(list->register_module(index, std::make_shared<BloomBlock>(config, options)));
    units_.push_back({"transformer.h." + index, "BloomBlock", blocks_.back().get()});
  }
  last_norm_ = add_affine(*root, "ln_f", vector, true, options);
  if (!config.tie_word_embeddings) head_ = add_affine(*this, "lm_head", table, false, options);
}

std::vector<std::pair<std::string, std::string>> Bloom::tied_names() const {
  if (head_) return {};
  return {{"lm_head.weight", "transformer.word_embeddings.weight"}};
}

std::int64_t Bloom::unit_activation_bytes(std::int64_t num_tokens) const {
  const std::int64_t C = config_.hidden_size;
  // Both norms' results, which one node for the block computes again, and the sum between them; the GELU's input.
  const bool is_one_node =
      fuses_attention() && !config_.residual_after_norm && (!is_training() || config_.hidden_dropout == 0);
  const std::int64_t numel = num_tokens * ((is_one_node ? 1 : 3) + 4) * C;
  const std::int64_t norms = num_tokens * 4 * 4;  // mean and deviation of each, in float32
  return attention_bytes(num_tokens) + numel * element_bytes() + norms +
         2 * dropout_bytes(num_tokens * C, config_.hidden_dropout);
}

at::Tensor Bloom::embed(const at::Tensor& ids, const at::Tensor&, const at::Tensor& table, bool is_tied) const {
  const at::Tensor tokens = look_up(table, ids, is_tied);
  return kernels::layer_norm(tokens, embedding_norm_->weight, embedding_norm_->bias, config_.layer_norm_epsilon);
}

at::Tensor Bloom::run_block(std::size_t index, const at::Tensor& x, const Attend& attend,
                            const DropoutKeys& keys) const {
  return blocks_[index]->forward(x, attend, keys);
}

at::Tensor Bloom::finish(const at::Tensor& x) {
  return kernels::layer_norm(x, last_norm_->weight, last_norm_->bias, config_.layer_norm_epsilon);
}

const at::Tensor& Bloom::head_weight() const {
  return head_ ? head_->weight : embedding_->weight;
}

std::optional<at::Tensor> Bloom::slopes() const {
  if (!slopes_.defined() || slopes_.device() != device()) {
    slopes_ = at::tensor(alibi_slopes(config_.num_heads), at::kFloat).to(device());
  }
  return slopes_;
}

}  // namespace tessera
