// OLMo 2: norms after each part, none before, and norms of queries and keys over all heads.
#include "model/families/family.h"

namespace tessera {

DecoderDescription read_olmo2(const JsonReader& config) {
  DecoderDescription decoder =
      read_llama_like(config, {.block_class = "Olmo2DecoderLayer", .norm_epsilon = 1e-5, .padding_id = 1});
  DecoderShape& shape = decoder.shape;
  shape.has_qkv_bias = shape.has_output_bias = config.boolean({"attention_bias"}, false);
  shape.norm = NormKind::kRmsBeforeRounding;
  shape.query_key_norm = QueryKeyNorm::kWhole;
  if (!config.json().contains("pad_token_id") && shape.vocab_size > 1) shape.padding_id = 1;  // the class's default
  DecoderNames& names = decoder.names;
  names.query_norm = "self_attn.q_norm";
  names.key_norm = "self_attn.k_norm";
  names.norm_before_attention = names.norm_before_mlp = "";
  names.norm_after_attention = "post_attention_layernorm";
  names.norm_after_mlp = "post_feedforward_layernorm";
  return decoder;
}

}  // namespace tessera
