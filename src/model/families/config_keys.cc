// Keys that several families read alike.
#include <fmt/format.h>

#include "model/families/family.h"

namespace tessera {

std::int64_t head_dim_of(const JsonReader& config, const DecoderShape& shape) {
  if (shape.hidden_size % shape.num_heads != 0) {
    config.refuse_member("hidden_size",
                         fmt::format("{} is not a multiple of the {} heads", shape.hidden_size, shape.num_heads));
  }
  return shape.hidden_size / shape.num_heads;
}

std::int64_t read_window(const JsonReader& config, const char* key, std::int64_t preset) {
  if (config.json().contains(key) && !config.has(key)) return 0;  // null
  return config.integer({key}, 1, kMaxPositions, preset);
}

void read_windows(const JsonReader& config, std::int64_t window, const std::function<bool(std::int64_t layer)>& slides,
                  DecoderShape& shape) {
  const auto types = config.find("layer_types");
  if (types && static_cast<std::int64_t>(types->size()) != shape.num_layers) {
    types->refuse(fmt::format("{} entries for {} layers", types->size(), shape.num_layers));
  }
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    bool is_sliding = slides(static_cast<std::int64_t>(i));
    if (types) {
      const std::string type = types->at(i).as_text();
      if (type != "full_attention" && type != "sliding_attention") {
        types->at(i).refuse_value("full_attention or sliding_attention");
      }
      is_sliding = type == "sliding_attention";
      if (is_sliding && window == 0) types->at(i).refuse("there is no sliding_window to slide");
    }
    shape.layers[i].window = is_sliding ? window : 0;
  }
}

void read_padding(const JsonReader& config, std::optional<std::int64_t> preset, DecoderShape& shape) {
  constexpr const char* kKey = "pad_token_id";
  if (!config.json().contains(kKey)) {
    if (preset && *preset >= shape.vocab_size) {
      config.refuse_member(kKey, fmt::format("missing, and this family's {} is beyond the vocab_size {}: set it, "
                                             "or null for none",
                                             *preset, shape.vocab_size));
    }
    shape.padding_id = preset;
    return;
  }
  if (!config.has(kKey)) return;  // null
  // As in torch.nn.Embedding, a negative id counts from the end.
  const std::int64_t id = config.integer({kKey}, -shape.vocab_size, shape.vocab_size - 1);
  shape.padding_id = id < 0 ? id + shape.vocab_size : id;
}

void refuse_if_set(const JsonReader& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto value = config.find(key);
    if (!value || value->json() == Json(false) || value->json() == Json::object()) continue;
    value->refuse("it changes what the model computes, and Tessera does not support it");
  }
}

}  // namespace tessera
