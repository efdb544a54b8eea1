// Small decoders of today's families, whose blocks are one node (kernels/gated_block.h).
#pragma once

#include <string>

#include "core/json.h"

namespace tessera {

// model: a model_type. Groups of heads, in some families wider together than the rest; of Gemma's layers the second has
// no window.
inline Json todays_decoder(const std::string& model, std::int64_t num_layers, double attention_dropout = 0) {
  Json config = {{"model_type", model},
                 {"vocab_size", 700},
                 {"hidden_size", 96},
                 {"intermediate_size", 224},
                 {"num_hidden_layers", num_layers},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"pad_token_id", nullptr},
                 {"attention_dropout", attention_dropout}};
  if (model == "qwen3" || model == "gemma3_text") config["head_dim"] = 32;
  if (model == "llama") config["attention_bias"] = config["mlp_bias"] = true;
  if (model == "gemma3_text") {
    config["sliding_window"] = 16;
    config["layer_types"] = Json::array();
    for (std::int64_t i = 0; i < num_layers; ++i) {
      config["layer_types"].push_back(i == 1 ? "full_attention" : "sliding_attention");
    }
  }
  return config;
}

}  // namespace tessera
