// The GPT-like model: token embedding, layers that compute what torch.nn.TransformerEncoderLayer computes (norm after
// the residual, ReLU) under a causal mask, and a head tied to the embedding, with a bias. Learned positions are
// optional.
//
// Parameters: embedding.weight, positions.weight, layers.N.* as torch.nn.TransformerEncoder names them, head.bias.
#pragma once

#include <memory>
#include <string>

#include "model/language_model.h"

namespace tessera {

// Its config.json is Tessera's own format: "model_type": "tessera-gpt".
struct GptConfig : LanguageModelShape {
  GptConfig() : LanguageModelShape{50000, 2048, 3, 16} {}

  std::int64_t ff_dim = 8192;
  std::int64_t seq_length = 512;   // the longest sequence, if positions are learned
  bool learned_positions = false;  // "positions": "none" or "learned"
  double dropout = 0.1;            // of the probabilities, after attention, within and after the feed-forward part

  // vocab_size, hidden_size, num_layers, num_heads and ff_dim are required. Throws UsageError naming `origin` and the
  // field.
  static GptConfig from_json(const Json& config, const std::string& origin);
  Json to_json() const;
};

class Gpt : public LanguageModel {
 public:
  explicit Gpt(const GptConfig& config, const at::TensorOptions& options = at::kFloat);

 protected:
  at::Tensor embed(const at::Tensor& ids, const at::Tensor& positions, const at::Tensor& table,
                   bool is_tied) const override;

 private:
  std::shared_ptr<Affine> positions_;  // null if there are none
};

}  // namespace tessera
