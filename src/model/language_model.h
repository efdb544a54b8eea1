// The interface of every text model: training on packed batches, and generation with a cache.
//
// A model is single-device code that knows nothing of ranks. Its blocks are its units and run through the UnitRunner
// that the caller gives; embedding, last norm and head belong to the root. Parameters are uninitialised until they are
// loaded or initialise() (parameters.h) is called. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_reader.h"
#include "kernels/attention.h"
#include "kernels/linear_cross_entropy.h"
#include "model/dropout.h"
#include "model/key_value_cache.h"
#include "model/parameters.h"
#include "tessera/packed_batch.h"
#include "tessera/text_model.h"
#include "tessera/unit.h"

namespace tessera {

// Upper limits: a config beyond these is a mistake, not a model.
inline constexpr std::int64_t kMaxVocabSize = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxHiddenSize = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxLayers = 100'000;
inline constexpr double kMaxDropout = 0.99;  // at 1 everything would be dropped

// What the families' configs have in common.
struct LanguageModelShape {
  std::int64_t vocab_size = 0, hidden_size = 0, num_layers = 0, num_heads = 0;
  std::optional<std::int64_t> max_positions{};  // none: any length
  bool has_alibi = false;
  double attention_dropout = 0;
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;

  std::int64_t head_dim() const { return hidden_size / num_heads; }
  // Reads the last two. Throws UsageError if the heads do not divide the hidden size.
  void read_rest(const JsonReader& reader);
};

// What a block calls once, with its fused projection: qkv [T, H, 3, D] (parts_dim 2) or [T, 3, H, D] (1) to [T, H, D].
struct Attend {
  std::function<at::Tensor(const at::Tensor& qkv, std::int64_t parts_dim)> call;
  // Where the call is packed_attention with this and nothing else: a block may make it part of something larger.
  std::optional<kernels::PackedAttention> packed = std::nullopt;

  at::Tensor operator()(const at::Tensor& qkv, std::int64_t parts_dim) const { return call(qkv, parts_dim); }
};

class LanguageBlock : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x, const Attend& attend, const DropoutKeys& keys) const = 0;
};

class LanguageModel : public TextModel {
 public:
  const LanguageModelShape& shape() const { return shape_; }
  std::int64_t vocab_size() const { return shape_.vocab_size; }
  std::optional<std::int64_t> max_positions() const { return shape_.max_positions; }
  const std::vector<Unit>& units() const override { return units_; }
  const Json& config() const { return config_; }  // as make_language_model takes it
  double initializer_range() const { return shape_.initializer_range; }
  // Names under which files may hold a parameter a second time, each with the parameter's own name: the tied head.
  const std::vector<std::pair<std::string, std::string>>& tied_names() const { return tied_names_; }
  // The name prefix that files of the model without its head leave out: "transformer"; empty: none.
  const std::string& base_prefix() const { return base_prefix_; }
  at::Device device() const { return head_weight().device(); }
  at::ScalarType dtype() const { return head_weight().scalar_type(); }

  // Dropout is active in training mode if the config's probability is not 0, with masks that depend on this seed alone.
  // Set it for each pass, from seed, rank and step; without a call it is 0.
  void set_dropout_seed(std::uint64_t seed) override { dropout_seed_ = seed; }

  // [T, C], after the last norm.
  at::Tensor hidden_states(const PackedBatch& batch, UnitRunner& runner);
  kernels::LossSum loss(const PackedBatch& batch, UnitRunner& runner, kernels::LinearCrossEntropy how = {});
  at::Tensor loss_sum(const PackedBatch& batch, UnitRunner& runner) final { return loss(batch, runner).sum; }
  std::string config_json() const final { return config_.dump(); }
  // [R, V] of the given rows of the batch ([R] int64), or of all.
  at::Tensor logits(const PackedBatch& batch, UnitRunner& runner, const at::Tensor& rows = {});

  // Generation, without gradients: the prompts, then one token of every sequence at a time. Both return [B, V], the
  // logits after each sequence's last token.
  KeyValueCache make_cache(std::int64_t num_sequences, std::int64_t capacity) const;
  at::Tensor prefill(const PackedBatch& prompts, KeyValueCache& cache, UnitRunner& runner);
  at::Tensor next_logits(const at::Tensor& ids, KeyValueCache& cache, UnitRunner& runner);

 protected:
  LanguageModel(const LanguageModelShape& shape, Json config) : shape_(shape), config_(std::move(config)) {}

  // Registers the next block of `list`, whose names begin with `prefix`, as a unit.
  void add_block(torch::nn::Module& list, const std::string& prefix, const std::string& kind,
                 std::shared_ptr<LanguageBlock> block);
  // [T] and [T] to [T, C], with the embedding's weight or, if it is tied to the head, with one name of a TiedTable.
  virtual at::Tensor embed(const at::Tensor& ids, const at::Tensor& positions, const at::Tensor& table,
                           bool is_tied) const = 0;

  std::shared_ptr<Affine> embedding_;
  std::shared_ptr<Affine> last_norm_;    // null: none
  std::shared_ptr<Affine> head_;         // [V, C]; null: tied to the embedding
  std::optional<at::Tensor> head_bias_;  // none: none
  std::vector<std::pair<std::string, std::string>> tied_names_;
  std::string base_prefix_;

 private:
  using AttendOfLayer = std::function<Attend(std::size_t layer, const DropoutKeys& keys)>;
  at::Tensor hidden_states(const PackedBatch& batch, UnitRunner& runner, const at::Tensor& table, bool is_tied);
  // The blocks and the last norm.
  at::Tensor run_units(at::Tensor x, const AttendOfLayer& attend_of, UnitRunner& runner);
  AttendOfLayer packed_attention_of(const PackedBatch& batch) const;
  const at::Tensor& head_weight() const { return head_ ? head_->weight : embedding_->weight; }
  at::Tensor head(const at::Tensor& hidden) const;
  std::optional<at::Tensor> slopes() const;  // [H] float32 on the device: ALiBi's

  LanguageModelShape shape_;
  Json config_;
  std::vector<std::shared_ptr<LanguageBlock>> blocks_;
  std::vector<Unit> units_;
  mutable at::Tensor slopes_;  // on the device of the last pass
  std::uint64_t dropout_seed_ = 0;
};

// By "model_type": "bloom" or "tessera-gpt"; `origin` is what messages call the config. `options`: device and type of
// the parameters. Throws UsageError if the type is unknown or the config is invalid.
std::shared_ptr<LanguageModel> make_language_model(const Json& config, const std::string& origin = "config.json",
                                                   const at::TensorOptions& options = at::kFloat);

}  // namespace tessera
