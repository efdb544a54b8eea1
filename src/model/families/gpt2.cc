// GPT-2: learned positions, layer norms, matrices stored transposed.
#include <cmath>

#include "model/families/family.h"

namespace tessera {
namespace {

DecoderNames gpt2_names() {
  DecoderNames names;
  names.base = "transformer";
  names.embedding = "transformer.wte";
  names.positions = "transformer.wpe";
  names.blocks = "transformer.h";
  names.last_norm = "transformer.ln_f";
  names.head = "lm_head";
  names.block_class = "GPT2Block";
  names.norm_before_attention = "ln_1";
  names.qkv = "attn.c_attn";
  names.output = "attn.c_proj";
  names.norm_before_mlp = "ln_2";
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  names.old_buffers = {"attn.bias", "attn.masked_bias"};  // the causal mask: the published files have it
  return names;
}

MlpKind read_gpt2_activation(const JsonReader& config) {
  const std::string name = config.text("activation_function", "gelu_new");
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return MlpKind::kGelu;
  if (name == "gelu") return MlpKind::kExactGelu;
  config.at("activation_function").refuse_value("gelu_new, gelu_pytorch_tanh or gelu");
}

}  // namespace

DecoderDescription read_gpt2(const JsonReader& config) {
  DecoderDescription decoder{{}, gpt2_names()};
  DecoderShape& s = decoder.shape;
  s.vocab_size = config.integer({"vocab_size"}, 1, kMaxVocabSize, 50257);
  s.hidden_size = config.integer({"n_embd", "hidden_size"}, 1, kMaxHiddenSize, 768);
  s.num_layers = config.integer({"n_layer", "num_hidden_layers"}, 1, kMaxLayers, 12);
  s.num_heads = s.num_key_value_heads = config.integer({"n_head", "num_attention_heads"}, 1, kMaxHiddenSize, 12);
  s.head_dim = head_dim_of(config, s);
  s.inner_size = config.integer({"n_inner"}, 1, 16 * kMaxHiddenSize, 4 * s.hidden_size);
  s.num_learned_positions = config.integer({"n_positions", "max_position_embeddings"}, 1, kMaxHiddenSize, 1024);
  s.norm_epsilon = config.real({"layer_norm_epsilon"}, 0, 1, 1e-5);
  s.mlp = read_gpt2_activation(config);
  s.qkv = QkvLayout::kStacked;
  s.has_qkv_bias = s.has_output_bias = s.has_mlp_bias = s.stores_transposed = true;
  s.layers.resize(static_cast<std::size_t>(s.num_layers));
  s.is_tied = config.boolean({"tie_word_embeddings"}, true);
  s.embedding_dropout = config.real({"embd_pdrop"}, 0, kMaxDropout, 0.1);
  s.hidden_dropout = config.real({"resid_pdrop"}, 0, kMaxDropout, 0.1);
  s.attention_dropout = config.real({"attn_pdrop"}, 0, kMaxDropout, 0.1);
  s.initializer_range = config.real({"initializer_range"}, 0, 1e3, 0.02);
  s.residual_initializer_scale = 1 / std::sqrt(2.0 * static_cast<double>(s.num_layers));
  refuse_if_set(config, {"scale_attn_by_inverse_layer_idx", "add_cross_attention"});
  if (!config.boolean({"scale_attn_weights"}, true)) s.attention_scale = 1;
  return decoder;
}

}  // namespace tessera
