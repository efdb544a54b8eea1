// SmolLM3: every fourth layer has no rotary positions.
#include <fmt/format.h>

#include "model/families/family.h"

namespace tessera {

DecoderDescription read_smollm3(const JsonReader& config) {
  DecoderDescription decoder = read_llama_like(config, {.block_class = "SmolLM3DecoderLayer",
                                                        .max_positions = 32768,
                                                        .num_key_value_heads = 4,
                                                        .theta = 2'000'000,
                                                        .is_tied = true,
                                                        .padding_id = 128004});
  DecoderShape& shape = decoder.shape;
  shape.has_qkv_bias = shape.has_output_bias = config.boolean({"attention_bias"}, false);
  shape.has_mlp_bias = config.boolean({"mlp_bias"}, false);
  const std::int64_t interval = config.integer({"no_rope_layer_interval"}, 1, kMaxLayers, 4);
  const auto list = config.find("no_rope_layers");  // 1: has rotary positions, whatever the name says
  if (list && list->size() < shape.layers.size()) {
    list->refuse(fmt::format("{} entries for {} layers", list->size(), shape.num_layers));
  }
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const bool rotates = list ? list->at(i).as_integer(0, 1) == 1 : static_cast<std::int64_t>(i + 1) % interval != 0;
    if (!rotates) shape.layers[i].rotary.reset();
  }
  const bool uses_window = config.boolean({"use_sliding_window"}, false);
  const std::int64_t window = config.has("sliding_window") ? read_window(config, "sliding_window", 0) : 0;
  read_windows(
      config, window, [](std::int64_t) { return false; }, shape);
  if (!config.has("layer_types") && uses_window) {
    for (LayerShape& layer : shape.layers) layer.window = layer.rotary ? 0 : window;
  }
  return decoder;
}

}  // namespace tessera
