// Llama 2 to 3.3, and what the families like it share.
#include <fmt/format.h>

#include "model/families/family.h"

namespace tessera {
namespace {

MlpKind read_activation(const JsonReader& config, const char* key, const char* preset) {
  const std::string name = config.text(key, preset);
  if (name == "silu" || name == "swish") return MlpKind::kGatedSilu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return MlpKind::kGatedGelu;
  config.at(key).refuse_value("silu or gelu_pytorch_tanh");
}

DecoderNames llama_names() {
  DecoderNames names;
  names.base = "model";
  names.embedding = "model.embed_tokens";
  names.blocks = "model.layers";
  names.last_norm = "model.norm";
  names.head = "lm_head";
  names.norm_before_attention = "input_layernorm";
  names.query = "self_attn.q_proj";
  names.key = "self_attn.k_proj";
  names.value = "self_attn.v_proj";
  names.output = "self_attn.o_proj";
  names.norm_before_mlp = "post_attention_layernorm";
  names.gate = "mlp.gate_proj";
  names.up = "mlp.up_proj";
  names.down = "mlp.down_proj";
  names.old_buffers = {"rotary_emb.inv_freq"};
  return names;
}

std::int64_t read_head_dim(const JsonReader& config, const LlamaDefaults& defaults, const DecoderShape& shape) {
  if (defaults.head_dim == 0 && !config.has("head_dim") && shape.hidden_size % shape.num_heads != 0) {
    config.refuse_member("hidden_size", fmt::format("{} is not a multiple of the {} heads, and there is no head_dim",
                                                    shape.hidden_size, shape.num_heads));
  }
  const std::int64_t usual = defaults.head_dim > 0 ? defaults.head_dim : shape.hidden_size / shape.num_heads;
  const std::int64_t head_dim = config.integer({"head_dim"}, 1, kMaxHiddenSize, usual);
  if (head_dim % 2 != 0) {
    config.refuse_member("head_dim", fmt::format("{}: rotary positions need an even number", head_dim));
  }
  return head_dim;
}

}  // namespace

DecoderDescription read_llama_like(const JsonReader& config, const LlamaDefaults& defaults) {
  DecoderDescription decoder{{}, llama_names()};
  decoder.names.block_class = defaults.block_class;
  DecoderShape& s = decoder.shape;
  s.vocab_size = config.integer({"vocab_size"}, 1, kMaxVocabSize);
  s.hidden_size = config.integer({"hidden_size"}, 1, kMaxHiddenSize);
  s.inner_size = config.integer({"intermediate_size"}, 1, 16 * kMaxHiddenSize);
  s.num_layers = config.integer({"num_hidden_layers"}, 1, kMaxLayers);
  s.num_heads = config.integer({"num_attention_heads"}, 1, kMaxHiddenSize);
  s.num_key_value_heads = config.integer(
      {"num_key_value_heads"}, 1, kMaxHiddenSize,
      defaults.num_key_value_heads > 0 && !config.json().contains("num_key_value_heads") ? defaults.num_key_value_heads
                                                                                         : s.num_heads);
  if (s.num_heads % s.num_key_value_heads != 0) {
    config.refuse_member("num_key_value_heads",
                         fmt::format("{} does not divide the {} heads", s.num_key_value_heads, s.num_heads));
  }
  s.head_dim = read_head_dim(config, defaults, s);
  s.norm = NormKind::kRms;
  s.norm_epsilon = config.real({"rms_norm_eps"}, 0, 1, defaults.norm_epsilon);
  s.mlp = read_activation(config, defaults.activation_key, defaults.activation);
  s.attention_dropout = config.real({"attention_dropout"}, 0, kMaxDropout, 0.0);
  s.initializer_range = config.real({"initializer_range"}, 0, 1e3, 0.02);
  s.is_tied = config.boolean({"tie_word_embeddings"}, defaults.is_tied);
  s.layers.assign(static_cast<std::size_t>(s.num_layers), LayerShape{.rotary = 0});
  if (defaults.reads_rotaries) {
    s.rotaries = {read_rotary(config, {defaults.theta, defaults.max_positions, s.head_dim, defaults.rotates_parts})};
  }
  read_padding(config, defaults.padding_id, s);
  refuse_if_set(config, {"attn_logit_softcapping", "final_logit_softcapping"});
  return decoder;
}

DecoderDescription read_llama(const JsonReader& config) {
  DecoderDescription decoder = read_llama_like(config, {.block_class = "LlamaDecoderLayer"});
  decoder.shape.has_qkv_bias = decoder.shape.has_output_bias = config.boolean({"attention_bias"}, false);
  decoder.shape.has_mlp_bias = config.boolean({"mlp_bias"}, false);
  return decoder;
}

}  // namespace tessera
