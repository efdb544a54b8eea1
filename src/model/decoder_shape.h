// What varies between decoders: a family reads its config.json into these two structs, and one decoder does the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/rotary.h"

namespace tessera {

enum class NormKind {
  kLayer,              // weight and bias
  kRms,                // rounds to the type, then multiplies the weight: Llama
  kRmsBeforeRounding,  // multiplies the weight, then rounds: OLMo 2
  kRmsOnePlus,         // multiplies 1 + weight, then rounds: Gemma
};
enum class MlpKind { kGelu, kExactGelu, kRelu, kGatedSilu, kGatedGelu };  // GELU: its tanh form, unless exact
enum class QueryKeyNorm { kNone, kPerHead, kWhole };                      // kWhole: over the projection of all heads
enum class QkvLayout {
  kSeparate,  // three projections
  kStacked,   // one: the heads of q, then of k, then of v
  kPerHead,   // one: each head's q, k and v are adjacent
};

struct LayerShape {
  std::optional<std::size_t> rotary{};  // which of the decoder's; none: no rotary positions
  std::int64_t window = 0;              // a token sees itself and the window - 1 tokens before it; 0: all before it
};

struct DecoderShape {
  std::int64_t vocab_size = 0, hidden_size = 0, num_layers = 0, inner_size = 0;
  std::int64_t num_heads = 0, num_key_value_heads = 0, head_dim = 0;

  NormKind norm = NormKind::kLayer;
  double norm_epsilon = 1e-5;
  QkvLayout qkv = QkvLayout::kSeparate;
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  MlpKind mlp = MlpKind::kGelu;
  bool has_qkv_bias = false, has_output_bias = false, has_mlp_bias = false;
  bool stores_transposed = false;    // the blocks' matrices are [in, out]: GPT-2
  bool residual_after_norm = false;  // what a part adds to is its norm's result: a variant of BLOOM

  bool has_alibi = false;
  std::int64_t num_learned_positions = 0;  // 0: none
  std::vector<Rotary> rotaries{};
  std::vector<LayerShape> layers{};  // one per layer
  double attention_scale = 0;        // of q k^T; 0: 1 / sqrt(head_dim)

  double embedding_scale = 1;
  std::optional<std::int64_t> padding_id{};  // of the embedding: its row gets no gradient where tokens are read
  bool is_tied = true;                       // the head's weight is the embedding's
  bool has_head_bias = false;

  double embedding_dropout = 0, attention_dropout = 0;
  double hidden_dropout = 0;  // after attention, after the MLP
  double inner_dropout = 0;   // within the MLP
  double initializer_range = 0.02;
  double residual_initializer_scale = 1;  // of the matrices that write to the residual stream

  bool is_gated() const { return mlp == MlpKind::kGatedSilu || mlp == MlpKind::kGatedGelu; }
  std::int64_t query_width() const { return num_heads * head_dim; }
  std::int64_t key_width() const { return num_key_value_heads * head_dim; }
  std::int64_t qkv_width() const { return query_width() + 2 * key_width(); }
};

// The names of modules, as files have them. A parameter is its module's name with ".weight" or ".bias"; with "weight"
// or "bias" if the name ends in '_'. What has no name does not exist.
struct DecoderNames {
  std::string base;  // "model": files of the model without its head leave it out
  std::string embedding, positions, embedding_norm, blocks, last_norm, head;
  std::string block_class;  // as --wrap and FSDP's files name it: "LlamaDecoderLayer"

  // Within a block. Where a norm stands is which of these there are.
  std::string norm_before_attention, norm_after_attention, norm_of_attention_sum;
  std::string norm_before_mlp, norm_after_mlp, norm_of_mlp_sum;
  std::string qkv;                // unless kSeparate
  std::string query, key, value;  // kSeparate
  std::string query_norm, key_norm;
  std::string output;
  std::string up, gate, gate_up;  // gate_up: both in one projection, the gate's rows first
  std::string down;

  // Buffers of older versions, which hold nothing that is not computed from the config: files may have them.
  std::vector<std::string> old_buffers{};
};

struct DecoderDescription {
  DecoderShape shape;
  DecoderNames names;
};

}  // namespace tessera
