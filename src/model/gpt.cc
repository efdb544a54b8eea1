// Shape letters: T tokens of all sequences, C hidden size, H heads, head size D.
#include "model/gpt.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

#include "kernels/layer_norm.h"
#include "model/tied_table.h"

namespace tessera {

class EncoderLayer : public torch::nn::Module {
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

  at::Tensor forward(const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const {
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

Gpt::Gpt(const GptConfig& config, const at::TensorOptions& options)
    : LanguageModel({config.vocab_size, config.hidden_size, config.num_layers, config.num_heads,
                     config.learned_positions ? std::optional(config.seq_length) : std::nullopt, config.dropout}),
      config_(config) {
  const std::int64_t C = config.hidden_size;
  embedding_ = add_affine(*this, "embedding", {config.vocab_size, C}, false, options);
  if (config.learned_positions) positions_ = add_affine(*this, "positions", {config.seq_length, C}, false, options);
  const auto list = register_module("layers", std::make_shared<NameLevel>());
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    const std::string index = std::to_string(i);
    layers_.push_back(list->register_module(index, std::make_shared<EncoderLayer>(config, options)));
    units_.push_back({"layers." + index, "TransformerEncoderLayer", layers_.back().get()});
  }
  const auto head = register_module("head", std::make_shared<NameLevel>());
  head_bias_ = head->register_parameter("bias", at::empty({config.vocab_size}, options));
}

std::int64_t Gpt::unit_activation_bytes(std::int64_t num_tokens) const {
  const bool drops = is_training() && config_.dropout > 0;
  const std::int64_t C = config_.hidden_size, F = config_.ff_dim;
  // Both sums and the first norm's result; the result of the ReLU, and of its dropout.
  const std::int64_t numel = num_tokens * (3 * C + (drops ? 2 : 1) * F);
  const std::int64_t norms = num_tokens * 4 * 4;  // mean and deviation of each, in float32
  return attention_bytes(num_tokens) + numel * element_bytes() + norms +
         dropout_bytes(num_tokens * (2 * C + F), config_.dropout);
}

at::Tensor Gpt::embed(const at::Tensor& ids, const at::Tensor& positions, const at::Tensor& table, bool is_tied) const {
  const at::Tensor tokens = look_up(table, ids, is_tied);
  return positions_ ? tokens + look_up(positions_->weight, positions, false) : tokens;
}

at::Tensor Gpt::run_block(std::size_t index, const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const {
  return layers_[index]->forward(x, attend, keys);
}

}  // namespace tessera
