// Gemma 3 as a text model: norms around both parts, and windows and rotary positions that alternate over the layers.
#include <cmath>

#include "model/families/family.h"

namespace tessera {
namespace {

constexpr std::size_t kGlobal = 0, kLocal = 1;  // of the rotary positions
constexpr std::int64_t kMaxPositionsOfGemma = 131072;

// Files of transformers 4 have scaling for global layers alone.
std::vector<Rotary> read_both(const JsonReader& config, std::int64_t head_dim) {
  const RotaryDefaults global{read_theta(config, "rope_theta", 1'000'000), kMaxPositionsOfGemma, head_dim},
      local{read_theta(config, "rope_local_base_freq", 10'000), kMaxPositionsOfGemma, head_dim};
  const auto values = config.find("rope_parameters"), scaling = config.find("rope_scaling");
  if (!values) return {read_rotary(config, scaling, global), read_rotary(config, {}, local)};
  if (scaling && scaling->json() != Json::object()) {
    scaling->refuse("expected none beside rope_parameters, whose full_attention says it");
  }
  return {read_rotary(config, values->find("full_attention"), global),
          read_rotary(config, values->find("sliding_attention"), local)};
}

}  // namespace

DecoderDescription read_gemma3(const JsonReader& config) {
  DecoderDescription decoder = read_llama_like(config, {.block_class = "Gemma3DecoderLayer",
                                                        .max_positions = kMaxPositionsOfGemma,
                                                        .num_key_value_heads = 4,
                                                        .head_dim = 256,
                                                        .is_tied = true,
                                                        .reads_rotaries = false,
                                                        .activation_key = "hidden_activation",
                                                        .activation = "gelu_pytorch_tanh",
                                                        .padding_id = 0});
  DecoderShape& shape = decoder.shape;
  refuse_if_set(config, {"use_bidirectional_attention"});
  shape.has_qkv_bias = shape.has_output_bias = config.boolean({"attention_bias"}, false);
  shape.norm = NormKind::kRmsOnePlus;
  shape.query_key_norm = QueryKeyNorm::kPerHead;
  shape.embedding_scale = std::sqrt(static_cast<double>(shape.hidden_size));
  shape.attention_scale = 1 / std::sqrt(config.real({"query_pre_attn_scalar"}, 1e-6, 1e9, 256.0));
  shape.rotaries = read_both(config, shape.head_dim);
  const std::int64_t pattern = config.integer({"sliding_window_pattern"}, 1, kMaxLayers, 6);
  const std::int64_t window = read_window(config, "sliding_window", 4096);
  if (window == 0 && !config.has("layer_types") && pattern > 1) {
    config.refuse_member("sliding_window", "null, but without layer_types there are layers that need it");
  }
  read_windows(
      config, window, [&](std::int64_t layer) { return (layer + 1) % pattern != 0; }, shape);
  for (LayerShape& layer : shape.layers) layer.rotary = layer.window > 0 ? kLocal : kGlobal;
  DecoderNames& names = decoder.names;
  names.query_norm = "self_attn.q_norm";
  names.key_norm = "self_attn.k_norm";
  names.norm_after_attention = "post_attention_layernorm";
  names.norm_before_mlp = "pre_feedforward_layernorm";
  names.norm_after_mlp = "post_feedforward_layernorm";
  return decoder;
}

}  // namespace tessera
