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

void read_windows(const JsonReader& config, std::int64_t window, bool (*slides)(std::int64_t layer, std::int64_t param),
                  std::int64_t param, DecoderShape& shape) {
  const auto types = config.find("layer_types");
  if (types && static_cast<std::int64_t>(types->size()) != shape.num_layers) {
    types->refuse(fmt::format("{} entries for {} layers", types->size(), shape.num_layers));
  }
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    bool is_sliding = slides(static_cast<std::int64_t>(i), param);
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
