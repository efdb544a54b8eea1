#include "model/gpt_config.h"

#include <fmt/format.h>

#include "core/json_reader.h"
#include "core/text.h"
#include "model/limits.h"

namespace tessera {

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
