// Small configs of today's decoders. (no torch)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"

namespace tessera {

// The families of today's decoders, by their model_type.
inline const std::vector<std::string>& decoder_families() {
  static const std::vector<std::string> names = {"llama", "mistral", "qwen2", "qwen3", "gemma3_text",
                                                 "phi3",  "olmo2",   "olmo3", "gpt2",  "smollm3"};
  return names;
}

// A small model of such a family, with whatever its shape allows to differ from the others: grouped heads, windows
// shorter than the tests' rows, layers without rotary positions, heads of another size than hidden / heads.
inline Json small_decoder_config(const std::string& family, double dropout = 0, std::int64_t vocab_size = 50) {
  if (family == "gpt2") {
    return {{"model_type", family},  {"vocab_size", vocab_size}, {"n_embd", 64},           {"n_layer", 3},
            {"n_head", 4},           {"n_positions", 64},        {"resid_pdrop", dropout}, {"embd_pdrop", dropout},
            {"attn_pdrop", dropout}, {"initializer_range", 0.1}};
  }
  Json config = {{"model_type", family},         {"vocab_size", vocab_size}, {"hidden_size", 64},
                 {"intermediate_size", 96},      {"num_hidden_layers", 3},   {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},     {"initializer_range", 0.1}, {"attention_dropout", dropout},
                 {"max_position_embeddings", 64}};
  const auto set = [&](const Json& more) { config.update(more); };
  if (family == "mistral") set({{"sliding_window", 4}});
  if (family == "qwen2") set({{"tie_word_embeddings", true}, {"num_key_value_heads", 1}});
  if (family == "qwen3") set({{"tie_word_embeddings", true}, {"head_dim", 32}});
  if (family == "gemma3_text") {
    set({{"head_dim", 32}, {"query_pre_attn_scalar", 20}, {"sliding_window", 3}, {"sliding_window_pattern", 2}});
  }
  if (family == "phi3") set({{"resid_pdrop", dropout}, {"sliding_window", 5}, {"pad_token_id", 0}});
  if (family == "olmo3") {
    set({{"sliding_window", 4}, {"layer_types", {"sliding_attention", "full_attention", "sliding_attention"}}});
  }
  if (family == "smollm3") set({{"no_rope_layer_interval", 2}, {"pad_token_id", 0}});
  return config;
}

}  // namespace tessera
