// Mistral: one window for all layers, or none.
#include "model/families/family.h"

namespace tessera {

DecoderDescription read_mistral(const JsonReader& config) {
  DecoderDescription decoder = read_llama_like(
      config, {.block_class = "MistralDecoderLayer", .max_positions = 131072, .num_key_value_heads = 8});
  const std::int64_t window = read_window(config, "sliding_window", 4096);
  for (LayerShape& layer : decoder.shape.layers) layer.window = window;
  return decoder;
}

}  // namespace tessera
