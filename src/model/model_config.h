// The sizes and options of the text models, from their config.json: BLOOM's as transformers writes it, and Tessera's
// own format for the GPT-like model that is trained from scratch ("model_type": "tessera-gpt").
#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"

namespace tessera {

// Upper limits: a config beyond these is a mistake, not a model.
inline constexpr std::int64_t kMaxVocabSize = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxHiddenSize = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxLayers = 100'000;
inline constexpr std::int64_t kMaxSeqLength = std::int64_t{1} << 24;
inline constexpr double kMaxDropout = 0.99;  // at 1 everything would be dropped

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
