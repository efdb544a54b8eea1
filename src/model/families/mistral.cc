// Mistral: one window for all layers, or none. With "layer_types" it is what transformers calls Ministral.
#include "model/families/family.h"

namespace tessera {

DecoderDescription read_mistral(const JsonReader& config) {
  DecoderDescription decoder = read_llama_like(
      config, {.block_class = "MistralDecoderLayer", .max_positions = 131072, .num_key_value_heads = 8});
  const std::int64_t window = read_window(config, "sliding_window", 4096);
  read_windows(
      config, window, [](std::int64_t) { return true; }, decoder.shape);
  return decoder;
}

}  // namespace tessera
