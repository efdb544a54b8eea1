// The families of text models: each reads its config.json into a DecoderDescription, in a file of its own, and has a
// row in families.cc. Names, defaults and meanings are those of transformers. What changes the result and is not
// understood is refused by name; everything else in a config is kept as it is.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "core/json_reader.h"
#include "model/decoder_shape.h"

namespace tessera {

// Upper limits: a config beyond these is a mistake, not a model.
inline constexpr std::int64_t kMaxVocabSize = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxHiddenSize = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxLayers = 100'000;
inline constexpr std::int64_t kMaxPositions = std::int64_t{1} << 40;
inline constexpr double kMaxDropout = 0.99;  // at 1 everything would be dropped

struct Family {
  const char* model_type;
  const char* architecture;  // transformers' class with a head; null: it has none
  DecoderDescription (*read)(const JsonReader& config);
};

DecoderDescription read_bloom(const JsonReader& config);
DecoderDescription read_gemma3(const JsonReader& config);
DecoderDescription read_gpt2(const JsonReader& config);
DecoderDescription read_llama(const JsonReader& config);
DecoderDescription read_mistral(const JsonReader& config);
DecoderDescription read_olmo2(const JsonReader& config);
DecoderDescription read_olmo3(const JsonReader& config);
DecoderDescription read_phi3(const JsonReader& config);
DecoderDescription read_qwen2(const JsonReader& config);
DecoderDescription read_qwen3(const JsonReader& config);
DecoderDescription read_smollm3(const JsonReader& config);
DecoderDescription read_tessera_gpt(const JsonReader& config);

// The family of a config's "model_type". Throws UsageError that lists them.
const Family& family_of(const JsonReader& config);

// What the Llama-like families share: sizes, RMS norms before each part, rotary positions, a gated MLP, and the names
// of modules. What the config may leave out:
struct LlamaDefaults {
  std::string block_class;
  std::int64_t max_positions = 2048;
  std::int64_t num_key_value_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;             // 0: hidden_size / heads
  double norm_epsilon = 1e-6;
  double theta = 10000;
  bool is_tied = false;
  bool rotates_parts = false;  // RotaryDefaults::may_be_partial
  bool reads_rotaries = true;  // no: the family does, Gemma's layers differ
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  std::optional<std::int64_t> padding_id{};
};
DecoderDescription read_llama_like(const JsonReader& config, const LlamaDefaults& defaults);

// One kind of rotary positions for all layers: "rope_theta" and "rope_scaling" of transformers 4, or "rope_parameters".
struct RotaryDefaults {
  double theta;
  std::int64_t max_positions, head_dim;
  // Phi-3: rotates a part of each head, and knows "longrope" alone, under older names too, for which its cache is
  // filled again.
  bool may_be_partial = false;
};
Rotary read_rotary(const JsonReader& config, const RotaryDefaults& defaults);
// The same from the values of one kind of layers, none: plain. The config's own "rope_theta" is not read.
Rotary read_rotary(const JsonReader& config, const std::optional<JsonReader>& values, const RotaryDefaults& defaults);
double read_theta(const JsonReader& config, const char* key, double preset);

// hidden_size / num_heads, which must be whole.
std::int64_t head_dim_of(const JsonReader& config, const DecoderShape& shape);
// "layer_types" gives each layer `window` or none; without it, `slides` says which layers have one.
void read_windows(const JsonReader& config, std::int64_t window, const std::function<bool(std::int64_t layer)>& slides,
                  DecoderShape& shape);
// A number above 0, or 0 where the key is absent or null.
std::int64_t read_window(const JsonReader& config, const char* key, std::int64_t preset);
// The row of the embedding that gets no gradient: `preset` where the key is absent, none where it is null.
void read_padding(const JsonReader& config, std::optional<std::int64_t> preset, DecoderShape& shape);

// Refuses the key unless it is absent, null, false or an empty object.
void refuse_if_set(const JsonReader& config, std::initializer_list<const char*> keys);

}  // namespace tessera
