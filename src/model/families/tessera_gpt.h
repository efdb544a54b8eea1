// The workshops' GPT-like model: token embedding, layers that compute what torch.nn.TransformerEncoderLayer computes
// (norm after the residual, ReLU) under a causal mask, and a head tied to the embedding, with a bias. Learned positions
// are optional.
//
// Parameters: embedding.weight, positions.weight, layers.N.* as torch.nn.TransformerEncoder names them, head.bias.
#pragma once

#include <string>

#include "model/families/family.h"

namespace tessera {

// Its config.json is Tessera's own format: "model_type": "tessera-gpt".
struct GptConfig {
  std::int64_t vocab_size = 50000, hidden_size = 2048, num_layers = 3, num_heads = 16, ff_dim = 8192;
  std::int64_t seq_length = 512;   // the longest sequence, if positions are learned
  bool learned_positions = false;  // "positions": "none" or "learned"
  double dropout = 0.1;            // of the probabilities, after attention, within and after the feed-forward part
  double layer_norm_epsilon = 1e-5, initializer_range = 0.02;

  Json to_json() const;
};

}  // namespace tessera
