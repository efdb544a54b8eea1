#include "model/families/tessera_gpt.h"

namespace tessera {
namespace {

DecoderNames gpt_names() {
  DecoderNames names;
  names.embedding = "embedding";
  names.positions = "positions";
  names.blocks = "layers";
  names.head = "head";
  names.block_class = "TransformerEncoderLayer";
  names.qkv = "self_attn.in_proj_";
  names.output = "self_attn.out_proj";
  names.up = "linear1";
  names.down = "linear2";
  names.norm_of_attention_sum = "norm1";
  names.norm_of_mlp_sum = "norm2";
  return names;
}

}  // namespace

DecoderDescription read_tessera_gpt(const JsonReader& config) {
  const GptConfig presets;
  DecoderDescription decoder{{}, gpt_names()};
  DecoderShape& s = decoder.shape;
  s.vocab_size = config.integer({"vocab_size"}, 1, kMaxVocabSize);
  s.hidden_size = config.integer({"hidden_size"}, 1, kMaxHiddenSize);
  s.num_layers = config.integer({"num_layers"}, 1, kMaxLayers);
  s.num_heads = s.num_key_value_heads = config.integer({"num_heads"}, 1, kMaxHiddenSize);
  s.inner_size = config.integer({"ff_dim"}, 1, 16 * kMaxHiddenSize);
  const std::int64_t length = config.integer({"seq_length"}, 1, std::int64_t{1} << 24, presets.seq_length);
  s.head_dim = head_dim_of(config, s);
  s.norm_epsilon = config.real({"layer_norm_epsilon"}, 0, 1, presets.layer_norm_epsilon);
  s.initializer_range = config.real({"initializer_range"}, 0, 1e3, presets.initializer_range);
  const std::string positions = config.text("positions", "none");
  if (positions != "none" && positions != "learned") {
    config.at("positions").refuse_value("\"none\" or \"learned\"");
  }
  s.num_learned_positions = positions == "learned" ? length : 0;
  s.hidden_dropout = s.inner_dropout = s.attention_dropout = config.real({"dropout"}, 0, kMaxDropout, presets.dropout);
  s.qkv = QkvLayout::kStacked;
  s.mlp = MlpKind::kRelu;
  s.has_qkv_bias = s.has_output_bias = s.has_mlp_bias = s.has_head_bias = true;
  s.layers.resize(static_cast<std::size_t>(s.num_layers));
  return decoder;
}

Json GptConfig::to_json() const {
  return {{"model_type", "tessera-gpt"},
          {"vocab_size", vocab_size},
          {"hidden_size", hidden_size},
          {"num_layers", num_layers},
          {"num_heads", num_heads},
          {"ff_dim", ff_dim},
          {"seq_length", seq_length},
          {"positions", learned_positions ? "learned" : "none"},
          {"dropout", dropout},
          {"layer_norm_epsilon", layer_norm_epsilon},
          {"initializer_range", initializer_range},
          {"tie_word_embeddings", true}};
}

}  // namespace tessera
