// OLMo 2: norms after each part, none before, and norms of queries and keys over all heads. OLMo 3: the same with
// windows in three of four layers; only layers without a window scale their rotary positions.
#include "model/families/family.h"

namespace tessera {
namespace {

DecoderDescription read_olmo(const JsonReader& config, const LlamaDefaults& defaults) {
  DecoderDescription decoder = read_llama_like(config, defaults);
  DecoderShape& shape = decoder.shape;
  shape.has_qkv_bias = shape.has_output_bias = config.boolean({"attention_bias"}, false);
  shape.norm = NormKind::kRmsBeforeRounding;
  shape.query_key_norm = QueryKeyNorm::kWhole;
  DecoderNames& names = decoder.names;
  names.query_norm = "self_attn.q_norm";
  names.key_norm = "self_attn.k_norm";
  names.norm_before_attention = names.norm_before_mlp = "";
  names.norm_after_attention = "post_attention_layernorm";
  names.norm_after_mlp = "post_feedforward_layernorm";
  return decoder;
}

constexpr double kThetaOfOlmo3 = 500'000;
constexpr std::size_t kFull = 0, kSliding = 1;  // of the rotary positions

std::vector<Rotary> read_olmo3_rotaries(const JsonReader& config, std::int64_t head_dim) {
  const RotaryDefaults defaults{kThetaOfOlmo3, 2048, head_dim};
  const auto by_type = config.find("rope_parameters"), scaling = config.find("rope_scaling");
  if (by_type && scaling) scaling->refuse("it cannot stand beside rope_parameters");
  if (by_type) by_type->allow_only({"full_attention", "sliding_attention"});
  const auto sliding = by_type ? by_type->find("sliding_attention") : std::nullopt;
  const auto theta = config.find("rope_theta");
  if (theta && theta->as_real() != kThetaOfOlmo3 && !(sliding && sliding->has("rope_theta"))) {
    theta->refuse(
        "in layers with a window, transformers 4 and 5 do not agree on it: give rope_parameters with a rope_theta for "
        "full_attention and for sliding_attention");
  }
  const auto full = by_type ? by_type->find("full_attention") : scaling;
  return {read_rotary(config, full, defaults), read_rotary(config, sliding, defaults)};
}

}  // namespace

DecoderDescription read_olmo2(const JsonReader& config) {
  return read_olmo(config, {.block_class = "Olmo2DecoderLayer", .norm_epsilon = 1e-5, .padding_id = 1});
}

DecoderDescription read_olmo3(const JsonReader& config) {
  DecoderDescription decoder = read_olmo(
      config, {.block_class = "Olmo3DecoderLayer", .norm_epsilon = 1e-5, .reads_rotaries = false, .padding_id = 1});
  DecoderShape& shape = decoder.shape;
  shape.rotaries = read_olmo3_rotaries(config, shape.head_dim);
  const std::int64_t window = read_window(config, "sliding_window", 4096);
  if (window == 0) config.refuse_member("sliding_window", "it must be a number");
  read_windows(
      config, window, [](std::int64_t layer) { return (layer + 1) % 4 != 0; }, shape);
  for (LayerShape& layer : shape.layers) layer.rotary = layer.window > 0 ? kSliding : kFull;
  return decoder;
}

}  // namespace tessera
