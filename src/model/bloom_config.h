// BLOOM's sizes and options, from the config.json that transformers writes.
#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"

namespace tessera {

struct BloomConfig {
  std::int64_t vocab_size = 250880;
  std::int64_t hidden_size = 64;  // "n_embed" in old files
  std::int64_t num_layers = 2;    // "n_layer", "num_hidden_layers"
  std::int64_t num_heads = 8;     // "n_head", "num_attention_heads"
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  double hidden_dropout = 0;
  double attention_dropout = 0;
  bool residual_after_norm = false;  // "apply_residual_connection_post_layernorm"
  bool tie_word_embeddings = true;

  std::int64_t head_dim() const { return hidden_size / num_heads; }

  // Absent fields take transformers' defaults. Throws UsageError naming `origin` and the field: another model_type,
  // impossible sizes, probabilities outside [0, 1), slow_but_exact with pretraining_tp > 1 (it would leave out biases).
  static BloomConfig from_json(const Json& config, const std::string& origin);
  Json to_json() const;
};

}  // namespace tessera
