// BLOOM, of any size: parameters are named and laid out as in transformers' BloomForCausalLM, with the head tied to the
// embedding.
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

// The slopes of ALiBi: one per head, by the rule of the paper's authors, which BLOOM follows.
//
// For 2^n heads: the powers 1, 2, ... of 2^(-8 / 2^n). For another number H: the slopes of the next smaller power of
// two, then every second slope of the next larger one, from its first, until there are H.
std::vector<float> alibi_slopes(std::int64_t num_heads);

class BloomBlock;

class Bloom : public LanguageModel {
 public:
  explicit Bloom(const BloomConfig& config, const at::TensorOptions& options = at::kFloat);

  Json config() const override { return config_.to_json(); }
  double initializer_range() const override { return config_.initializer_range; }
  std::vector<std::pair<std::string, std::string>> tied_names() const override;
  std::string base_prefix() const override { return "transformer"; }

 protected:
  at::Tensor embed(const at::Tensor& ids, const at::Tensor& positions, const at::Tensor& table,
                   bool is_tied) const override;
  const at::Tensor& embedding_weight() const override { return embedding_->weight; }
  at::Tensor run_block(std::size_t index, const at::Tensor& x, const Attend& attend,
                       const DropoutKeys& keys) const override;
  at::Tensor finish(const at::Tensor& x) override;
  const at::Tensor& head_weight() const override;
  std::optional<at::Tensor> slopes() const override;

 private:
  BloomConfig config_;
  std::shared_ptr<Affine> embedding_, embedding_norm_, last_norm_;
  std::shared_ptr<Affine> head_;  // null if tied
  std::vector<std::shared_ptr<BloomBlock>> blocks_;
  mutable at::Tensor slopes_;  // on the device of the last pass
};

}  // namespace tessera
