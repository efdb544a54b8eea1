#include "model/model_config.h"

#include <fmt/format.h>

#include "core/json_reader.h"
#include "core/text.h"

namespace tessera {

BloomConfig BloomConfig::from_json(const Json& config, const std::string& origin) {
  const JsonSource source{&config, origin};
  const JsonReader reader(source);
  if (const std::string type = reader.text({"model_type"}); type != "bloom") {
    reader.at("model_type").refuse_value("\"bloom\"");
  }
  BloomConfig c;
  c.vocab_size = reader.integer({"vocab_size"}, 1, kMaxVocabSize, c.vocab_size);
  c.hidden_size = reader.integer({"hidden_size", "n_embed"}, 1, kMaxHiddenSize, c.hidden_size);
  c.num_layers = reader.integer({"n_layer", "num_hidden_layers"}, 1, kMaxLayers, c.num_layers);
  c.num_heads = reader.integer({"n_head", "num_attention_heads"}, 1, kMaxHiddenSize, c.num_heads);
  if (c.hidden_size % c.num_heads != 0) {
    reader.refuse_member("hidden_size",
                         fmt::format("{} is not a multiple of the {} heads", c.hidden_size, c.num_heads));
  }
  if (const std::int64_t inner = reader.integer({"n_inner"}, 1, 4 * kMaxHiddenSize, 4 * c.hidden_size);
      inner != 4 * c.hidden_size) {
    reader.refuse_member("n_inner",
                         fmt::format("expected BLOOM's 4 x hidden_size = {}, found {}", 4 * c.hidden_size, inner));
  }
  c.layer_norm_epsilon = reader.real({"layer_norm_epsilon"}, 0, 1, c.layer_norm_epsilon);
  c.initializer_range = reader.real({"initializer_range"}, 0, 1e3, c.initializer_range);
  c.hidden_dropout = reader.real({"hidden_dropout"}, 0, kMaxDropout, c.hidden_dropout);
  c.attention_dropout = reader.real({"attention_dropout"}, 0, kMaxDropout, c.attention_dropout);
  c.residual_after_norm = reader.boolean({"apply_residual_connection_post_layernorm"}, c.residual_after_norm);
  c.tie_word_embeddings = reader.boolean({"tie_word_embeddings"}, c.tie_word_embeddings);
  const std::int64_t split = reader.integer({"pretraining_tp"}, 1, kMaxHiddenSize, 1);
  if (reader.boolean({"slow_but_exact"}, false) && split > 1) {
    reader.refuse_member(
        "slow_but_exact",
        fmt::format("true with \"pretraining_tp\" {}: Tessera does not split layers to reproduce the rounding "
                    "of the original training; set it to false",
                    split));
  }
  return c;
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

GptConfig GptConfig::from_json(const Json& config, const std::string& origin) {
  const JsonSource source{&config, origin};
  const JsonReader reader(source);
  if (const std::string type = reader.text({"model_type"}); type != "tessera-gpt") {
    reader.at("model_type").refuse_value("\"tessera-gpt\"");
  }
  GptConfig c;
  c.vocab_size = reader.integer({"vocab_size"}, 1, kMaxVocabSize);
  c.hidden_size = reader.integer({"hidden_size"}, 1, kMaxHiddenSize);
  c.num_layers = reader.integer({"num_layers"}, 1, kMaxLayers);
  c.num_heads = reader.integer({"num_heads"}, 1, kMaxHiddenSize);
  c.ff_dim = reader.integer({"ff_dim"}, 1, 16 * kMaxHiddenSize);
  c.seq_length = reader.integer({"seq_length"}, 1, kMaxSeqLength, c.seq_length);
  if (c.hidden_size % c.num_heads != 0) {
    reader.refuse_member("hidden_size",
                         fmt::format("{} is not a multiple of the {} heads", c.hidden_size, c.num_heads));
  }
  const std::string positions = reader.text({"positions"}, "none");
  if (positions != "none" && positions != "learned") {
    reader.at("positions").refuse_value("\"none\" or \"learned\"");
  }
  c.learned_positions = positions == "learned";
  c.dropout = reader.real({"dropout"}, 0, kMaxDropout, c.dropout);
  c.layer_norm_epsilon = reader.real({"layer_norm_epsilon"}, 0, 1, c.layer_norm_epsilon);
  c.initializer_range = reader.real({"initializer_range"}, 0, 1e3, c.initializer_range);
  return c;
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
