// The sizes and options of the GPT-like model that is trained from scratch. Its config.json is Tessera's own format,
// "model_type": "tessera-gpt".
#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"

namespace tessera {

struct GptConfig {
  std::int64_t vocab_size = 50000;
  std::int64_t hidden_size = 2048;
  std::int64_t num_layers = 3;
  std::int64_t num_heads = 16;
  std::int64_t ff_dim = 8192;
  std::int64_t seq_length = 512;   // the longest sequence, if positions are learned
  bool learned_positions = false;  // "positions": "none" or "learned"
  double dropout = 0.1;            // of the probabilities, after attention, within and after the feed-forward part
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;

  std::int64_t head_dim() const { return hidden_size / num_heads; }

  // vocab_size, hidden_size, num_layers, num_heads and ff_dim are required. Throws UsageError naming `origin` and the
  // field.
  static GptConfig from_json(const Json& config, const std::string& origin);
  Json to_json() const;
};

}  // namespace tessera
