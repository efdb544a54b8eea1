// Phi-3, Phi-3.5 and Phi-4-mini: fused projections, and rotary positions for long rows.
#include "model/families/family.h"

namespace tessera {

DecoderDescription read_phi3(const JsonReader& config) {
  DecoderDescription decoder = read_llama_like(config, {.block_class = "Phi3DecoderLayer",
                                                        .max_positions = 4096,
                                                        .norm_epsilon = 1e-5,
                                                        .rotates_parts = true,
                                                        .padding_id = 32000});
  DecoderShape& shape = decoder.shape;
  shape.qkv = QkvLayout::kStacked;
  shape.hidden_dropout = config.real({"resid_pdrop"}, 0, kMaxDropout, 0.0);
  const std::int64_t window = read_window(config, "sliding_window", 0);
  for (LayerShape& layer : shape.layers) layer.window = window;
  DecoderNames& names = decoder.names;
  names.query = names.key = names.value = "";
  names.qkv = "self_attn.qkv_proj";
  names.gate = names.up = "";
  names.gate_up = "mlp.gate_up_proj";
  return decoder;
}

}  // namespace tessera
