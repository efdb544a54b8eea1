// Qwen2, Qwen2.5 and Qwen3, all dense: the last layers may have a window.
#include "model/families/family.h"

namespace tessera {
namespace {

void read_qwen_windows(const JsonReader& config, DecoderShape& shape) {
  const bool uses_window = config.boolean({"use_sliding_window"}, false);
  const std::int64_t window = uses_window ? read_window(config, "sliding_window", 4096) : 0;
  const std::int64_t num_full = config.integer({"max_window_layers"}, 0, kMaxLayers, 28);
  read_windows(
      config, window, [&](std::int64_t layer) { return layer >= num_full; }, shape);
}

}  // namespace

DecoderDescription read_qwen2(const JsonReader& config) {
  DecoderDescription decoder =
      read_llama_like(config, {.block_class = "Qwen2DecoderLayer", .max_positions = 32768, .num_key_value_heads = 32});
  decoder.shape.has_qkv_bias = true;
  read_qwen_windows(config, decoder.shape);
  return decoder;
}

DecoderDescription read_qwen3(const JsonReader& config) {
  DecoderDescription decoder = read_llama_like(
      config, {.block_class = "Qwen3DecoderLayer", .max_positions = 32768, .num_key_value_heads = 32, .head_dim = 128});
  decoder.shape.has_qkv_bias = decoder.shape.has_output_bias = config.boolean({"attention_bias"}, false);
  decoder.shape.query_key_norm = QueryKeyNorm::kPerHead;
  decoder.names.query_norm = "self_attn.q_norm";
  decoder.names.key_norm = "self_attn.k_norm";
  read_qwen_windows(config, decoder.shape);
  return decoder;
}

}  // namespace tessera
