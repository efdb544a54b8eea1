// BLOOM, of any size: parameters are named and laid out as in transformers' BloomForCausalLM.
#pragma once

#include <string>

#include "model/families/family.h"

namespace tessera {

// Its config.json as transformers writes it; what is absent there takes transformers' defaults.
struct BloomConfig {
  std::int64_t vocab_size = 250880, hidden_size = 64, num_layers = 2, num_heads = 8;
  double layer_norm_epsilon = 1e-5, initializer_range = 0.02;
  double hidden_dropout = 0, attention_dropout = 0;
  bool residual_after_norm = false;  // "apply_residual_connection_post_layernorm"
  bool tie_word_embeddings = true;

  Json to_json() const;
};

}  // namespace tessera
