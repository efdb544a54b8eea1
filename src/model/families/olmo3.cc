// OLMo 3: OLMo 2 with windows in three of four layers. Only layers without a window scale their rotary positions.
#include "model/families/family.h"

namespace tessera {
namespace {

constexpr double kTheta = 500'000;
constexpr std::size_t kFull = 0, kSliding = 1;  // of the rotary positions

std::vector<Rotary> read_rotaries(const JsonReader& config, std::int64_t head_dim) {
  const RotaryDefaults defaults{kTheta, 2048, head_dim};
  const auto by_type = config.find("rope_parameters"), scaling = config.find("rope_scaling");
  if (by_type && scaling) scaling->refuse("it cannot stand beside rope_parameters");
  if (by_type) by_type->allow_only({"full_attention", "sliding_attention"});
  const auto sliding = by_type ? by_type->find("sliding_attention") : std::nullopt;
  const auto theta = config.find("rope_theta");
  if (theta && theta->as_real() != kTheta && !(sliding && sliding->has("rope_theta"))) {
    theta->refuse(
        "in layers with a window, transformers 4 and 5 do not agree on it: give rope_parameters with a rope_theta for "
        "full_attention and for sliding_attention");
  }
  const auto full = by_type ? by_type->find("full_attention") : scaling;
  return {read_rotary(config, full, defaults), read_rotary(config, sliding, defaults)};
}

}  // namespace

DecoderDescription read_olmo3(const JsonReader& config) {
  DecoderDescription decoder = read_olmo2(config);
  decoder.names.block_class = "Olmo3DecoderLayer";
  DecoderShape& shape = decoder.shape;
  shape.rotaries = read_rotaries(config, shape.head_dim);
  const std::int64_t window = read_window(config, "sliding_window", 4096);
  if (window == 0) config.refuse_member("sliding_window", "it must be a number");
  const auto slides = [](std::int64_t layer, std::int64_t interval) { return (layer + 1) % interval != 0; };
  read_windows(config, window, slides, 4, shape);
  for (LayerShape& layer : shape.layers) layer.rotary = layer.window > 0 ? kSliding : kFull;
  return decoder;
}

}  // namespace tessera
