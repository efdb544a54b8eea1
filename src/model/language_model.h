// A decoder: embedding, blocks, norm, head. One class serves every text model; families/ says how each is built.
//
// Runs its blocks as units through a UnitRunner; knows nothing about ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "kernels/linear_cross_entropy.h"
#include "model/decoder_block.h"
#include "model/decoder_shape.h"
#include "model/dropout.h"
#include "model/key_value_cache.h"
#include "model/parameters.h"
#include "tessera/packed_batch.h"
#include "tessera/text_model.h"
#include "tessera/unit.h"

namespace tessera {

class LanguageModel : public TextModel {
 public:
  // `config`: what make_language_model makes this model of again.
  LanguageModel(const DecoderDescription& decoder, Json config, const at::TensorOptions& options = at::kFloat);

  const DecoderShape& shape() const { return shape_; }
  std::int64_t vocab_size() const { return shape_.vocab_size; }
  // None: any length.
  std::optional<std::int64_t> max_positions() const;
  const std::vector<Unit>& units() const override { return units_; }
  const Json& config() const { return config_; }
  InitialValues initial_values() const;
  // Names under which files may hold a parameter a second time, each with the parameter's own name: the tied head.
  const std::vector<std::pair<std::string, std::string>>& tied_names() const { return tied_names_; }
  // The name prefix that files of the model without its head leave out: "transformer"; empty: none.
  const std::string& base_prefix() const { return names_.base; }
  // Endings of names that older files hold in vain.
  const std::vector<std::string>& old_buffers() const { return names_.old_buffers; }
  at::Device device() const { return head_weight().device(); }
  at::ScalarType dtype() const { return head_weight().scalar_type(); }

  // Dropout is active in training mode if the config's probability is not 0, with masks that depend on this seed alone.
  // Set it for each pass, from seed, rank and step; without a call it is 0.
  void set_dropout_seed(std::uint64_t seed) override { dropout_seed_ = seed; }

  // [T, C], after the last norm.
  at::Tensor hidden_states(const PackedBatch& batch, UnitRunner& runner);
  kernels::LossSum loss(const PackedBatch& batch, UnitRunner& runner, kernels::LinearCrossEntropy how = {});
  at::Tensor loss_sum(const PackedBatch& batch, UnitRunner& runner) override { return loss(batch, runner).sum; }
  std::string config_json() const override { return config_.dump(); }
  // [R, V] of the given rows of the batch ([R] int64), or of all.
  at::Tensor logits(const PackedBatch& batch, UnitRunner& runner, const at::Tensor& rows = {});

  // Generation, without gradients: the prompts, then one token of every sequence at a time. Both return [B, V], the
  // logits after each sequence's last token.
  KeyValueCache make_cache(std::int64_t num_sequences, std::int64_t capacity) const;
  at::Tensor prefill(const PackedBatch& prompts, KeyValueCache& cache, UnitRunner& runner);
  at::Tensor next_logits(const at::Tensor& ids, KeyValueCache& cache, UnitRunner& runner);
  // Whether the next token changes how all tokens before it turn: then the sequences with it are prompts again, as in
  // transformers' Phi-3. (Rotary positions of the kind "dynamic" change with every token, those of the kind "longrope"
  // in other families as in Phi-3. There, as in transformers, the cache keeps what earlier tokens were turned by.)
  bool must_refill(const KeyValueCache& cache) const;

 private:
  // What the blocks of one pass see: attention of each layer, but for what differs between layers.
  struct Pass {
    Attend attend;
    std::vector<kernels::RotaryTable> tables;  // one per kind of rotary positions
  };
  Pass pass_over(const PackedBatch& batch) const;
  Attend attend_of(const Pass& pass, std::size_t layer, const DropoutKeys& keys) const;
  DropoutKeys dropout_keys() const { return is_training() ? DropoutKeys(dropout_seed_) : DropoutKeys(); }

  // [T] and [T] to [T, C], with the embedding's weight or, if it is tied to the head, with one name of a TiedTable.
  at::Tensor embed(const at::Tensor& ids, const at::Tensor& positions, const at::Tensor& table, bool is_tied) const;
  at::Tensor hidden_states(const PackedBatch& batch, UnitRunner& runner, const at::Tensor& table, bool is_tied);
  // The blocks and the last norm.
  at::Tensor run_units(at::Tensor x, const Pass& pass, UnitRunner& runner);
  const at::Tensor& head_weight() const { return head_.exists() ? head_.weight : embedding_; }
  at::Tensor head(const at::Tensor& hidden) const;
  std::optional<at::Tensor> slopes() const;  // [H] float32 on the device: ALiBi's
  void check_length(std::int64_t length) const;

  DecoderShape shape_;
  DecoderNames names_;
  Json config_;
  at::Tensor embedding_, positions_;  // [V, C]; [P, C], undefined if positions are not learned
  DecoderNorm embedding_norm_, last_norm_;
  Projection head_;                      // [V, C]; does not exist if it is tied to the embedding
  std::optional<at::Tensor> head_bias_;  // none: none
  std::vector<std::shared_ptr<DecoderBlock>> blocks_;
  std::vector<Unit> units_;
  std::vector<std::pair<std::string, std::string>> tied_names_;
  mutable at::Tensor slopes_;  // on the device of the last pass
  std::uint64_t dropout_seed_ = 0;
};

// The slopes of ALiBi: one per head, by the rule of the paper's authors, which BLOOM follows.
//
// For 2^n heads: the powers 1, 2, ... of 2^(-8 / 2^n). For another number H: the slopes of the next smaller power of
// two, then every second slope of the next larger one, from its first, until there are H.
std::vector<float> alibi_slopes(std::int64_t num_heads);

// By the "model_type" of a config.json; `origin` is what messages call the config. `options`: device and type of the
// parameters. Throws UsageError if the type is unknown or the config is invalid.
std::shared_ptr<LanguageModel> make_language_model(const Json& config, const std::string& origin = "config.json",
                                                   const at::TensorOptions& options = at::kFloat);

// The config of the same model with this many blocks, in the order of the first ones.
Json with_num_blocks(Json config, std::int64_t num_blocks);

}  // namespace tessera
