#include "model/families/bloom.h"

#include <fmt/format.h>

namespace tessera {
namespace {

DecoderNames bloom_names() {
  DecoderNames names;
  names.base = "transformer";
  names.embedding = "transformer.word_embeddings";
  names.embedding_norm = "transformer.word_embeddings_layernorm";
  names.blocks = "transformer.h";
  names.last_norm = "transformer.ln_f";
  names.head = "lm_head";
  names.block_class = "BloomBlock";
  names.norm_before_attention = "input_layernorm";
  names.qkv = "self_attention.query_key_value";
  names.output = "self_attention.dense";
  names.norm_before_mlp = "post_attention_layernorm";
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
  return names;
}

// Layers that were split in training would be computed in parts again, which leaves out biases.
void check_split(const JsonReader& config) {
  const std::int64_t split = config.integer({"pretraining_tp"}, 1, kMaxHiddenSize, 1);
  if (!config.boolean({"slow_but_exact"}, false) || split == 1) return;
  config.refuse_member("slow_but_exact",
                       fmt::format("true with \"pretraining_tp\" {}: Tessera does not split layers to reproduce the "
                                   "rounding of the original training; set it to false",
                                   split));
}

}  // namespace

DecoderDescription read_bloom(const JsonReader& config) {
  const BloomConfig presets;
  DecoderDescription decoder{{}, bloom_names()};
  DecoderShape& s = decoder.shape;
  s.vocab_size = config.integer({"vocab_size"}, 1, kMaxVocabSize, presets.vocab_size);
  s.hidden_size = config.integer({"hidden_size", "n_embed"}, 1, kMaxHiddenSize, presets.hidden_size);
  s.num_layers = config.integer({"n_layer", "num_hidden_layers"}, 1, kMaxLayers, presets.num_layers);
  s.num_heads = s.num_key_value_heads =
      config.integer({"n_head", "num_attention_heads"}, 1, kMaxHiddenSize, presets.num_heads);
  s.head_dim = head_dim_of(config, s);
  s.inner_size = 4 * s.hidden_size;
  if (const auto inner = config.integer({"n_inner"}, 1, 4 * kMaxHiddenSize, s.inner_size); inner != s.inner_size) {
    config.refuse_member("n_inner",
                         fmt::format("expected BLOOM's 4 x hidden_size = {}, found {}", s.inner_size, inner));
  }
  s.norm_epsilon = config.real({"layer_norm_epsilon"}, 0, 1, presets.layer_norm_epsilon);
  s.initializer_range = config.real({"initializer_range"}, 0, 1e3, presets.initializer_range);
  s.hidden_dropout = config.real({"hidden_dropout"}, 0, kMaxDropout, presets.hidden_dropout);
  s.attention_dropout = config.real({"attention_dropout"}, 0, kMaxDropout, presets.attention_dropout);
  s.residual_after_norm = config.boolean({"apply_residual_connection_post_layernorm"}, presets.residual_after_norm);
  s.is_tied = config.boolean({"tie_word_embeddings"}, presets.tie_word_embeddings);
  s.qkv = QkvLayout::kPerHead;
  s.has_qkv_bias = s.has_output_bias = s.has_mlp_bias = s.has_alibi = true;
  s.layers.resize(static_cast<std::size_t>(s.num_layers));
  check_split(config);
  return decoder;
}

Json BloomConfig::to_json() const {
  return {{"architectures", {"BloomForCausalLM"}},
          {"model_type", "bloom"},
          {"vocab_size", vocab_size},
          {"hidden_size", hidden_size},
          {"n_layer", num_layers},
          {"n_head", num_heads},
          {"layer_norm_epsilon", layer_norm_epsilon},
          {"initializer_range", initializer_range},
          {"hidden_dropout", hidden_dropout},
          {"attention_dropout", attention_dropout},
          {"apply_residual_connection_post_layernorm", residual_after_norm},
          {"tie_word_embeddings", tie_word_embeddings},
          {"slow_but_exact", false},
          {"pretraining_tp", 1}};
}

}  // namespace tessera
