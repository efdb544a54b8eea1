// The GPT-like model: token embedding, layers that compute what torch.nn.TransformerEncoderLayer computes (norm after
// the residual, ReLU) under a causal mask, and a head tied to the embedding, with a bias. Learned positions are
// optional.
//
// Parameters: embedding.weight, positions.weight, layers.N.* as torch.nn.TransformerEncoder names them, head.bias.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/language_model.h"
#include "model/model_config.h"
#include "model/parameters.h"

namespace tessera {

class EncoderLayer;

class Gpt : public LanguageModel {
 public:
  explicit Gpt(const GptConfig& config, const at::TensorOptions& options = at::kFloat);

  Json config() const override { return config_.to_json(); }
  double initializer_range() const override { return config_.initializer_range; }
  std::vector<std::pair<std::string, std::string>> tied_names() const override {
    return {{"head.weight", "embedding.weight"}};
  }

 protected:
  at::Tensor embed(const at::Tensor& ids, const at::Tensor& positions, const at::Tensor& table,
                   bool is_tied) const override;
  const at::Tensor& embedding_weight() const override { return embedding_->weight; }
  at::Tensor run_block(std::size_t index, const at::Tensor& x, const Attend& attend,
                       const DropoutKeys& keys) const override;
  at::Tensor finish(const at::Tensor& x) override { return x; }
  const at::Tensor& head_weight() const override { return embedding_->weight; }
  std::optional<at::Tensor> head_bias() const override { return head_bias_; }

 private:
  GptConfig config_;
  std::shared_ptr<Affine> embedding_;
  std::shared_ptr<Affine> positions_;  // null if there are none
  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  at::Tensor head_bias_;
};

}  // namespace tessera
