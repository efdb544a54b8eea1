// BLOOM, of any size: parameters are named and laid out as in transformers' BloomForCausalLM, with the head tied to the
// embedding.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/language_model.h"

namespace tessera {

// The slopes of ALiBi: one per head, by the rule of the paper's authors, which BLOOM follows.
//
// For 2^n heads: the powers 1, 2, ... of 2^(-8 / 2^n). For another number H: the slopes of the next smaller power of
// two, then every second slope of the next larger one, from its first, until there are H.
std::vector<float> alibi_slopes(std::int64_t num_heads);

// Its config.json as transformers writes it.
struct BloomConfig : LanguageModelShape {
  // Absent fields take transformers' defaults.
  BloomConfig() : LanguageModelShape{250880, 64, 2, 8} { has_alibi = true; }

  double hidden_dropout = 0;
  bool residual_after_norm = false;  // "apply_residual_connection_post_layernorm"
  bool tie_word_embeddings = true;

  // Throws UsageError naming `origin` and the field: impossible sizes, probabilities outside [0, 1), slow_but_exact
  // with pretraining_tp > 1 (it would leave out biases).
  static BloomConfig from_json(const Json& config, const std::string& origin);
  Json to_json() const;
};

class Bloom : public LanguageModel {
 public:
  explicit Bloom(const BloomConfig& config, const at::TensorOptions& options = at::kFloat);

 protected:
  at::Tensor embed(const at::Tensor& ids, const at::Tensor& positions, const at::Tensor& table,
                   bool is_tied) const override;

 private:
  std::shared_ptr<Affine> embedding_norm_;
};

}  // namespace tessera
