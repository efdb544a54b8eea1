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

#include "core/json.h"
#include "kernels/attention.h"
#include "kernels/linear_cross_entropy.h"
#include "model/dropout.h"
#include "model/key_value_cache.h"
#include "tessera/packed_batch.h"
#include "tessera/text_model.h"
#include "tessera/unit.h"

namespace tessera {

struct LanguageModelShape {
  std::int64_t vocab_size = 0, hidden_size = 0, num_layers = 0, num_heads = 0;
  std::optional<std::int64_t> max_positions;  // none: any length
  double attention_dropout = 0;

  std::int64_t head_dim() const { return hidden_size / num_heads; }
};

// What a block calls once, with its fused projection: qkv [T, H, 3, D] (parts_dim 2) or [T, 3, H, D] (1) to [T, H, D].
struct Attend {
  std::function<at::Tensor(const at::Tensor& qkv, std::int64_t parts_dim)> call;
  // Where the call is packed_attention with this and nothing else: a block may make it part of something larger.
  std::optional<kernels::PackedAttention> packed = std::nullopt;

  at::Tensor operator()(const at::Tensor& qkv, std::int64_t parts_dim) const { return call(qkv, parts_dim); }
};

class LanguageModel : public TextModel {
 public:
  const LanguageModelShape& shape() const { return shape_; }
  std::int64_t vocab_size() const { return shape_.vocab_size; }
  std::optional<std::int64_t> max_positions() const { return shape_.max_positions; }
  const std::vector<Unit>& units() const override { return units_; }
  virtual Json config() const = 0;  // as make_language_model takes it
  virtual double initializer_range() const = 0;
  // Names under which files may hold a parameter a second time, each with the parameter's own name: the tied head.
  virtual std::vector<std::pair<std::string, std::string>> tied_names() const = 0;
  // The name prefix that files of the model without its head leave out: "transformer"; empty: none.
  virtual std::string base_prefix() const { return {}; }
  at::Device device() const { return head_weight().device(); }
  at::ScalarType dtype() const { return head_weight().scalar_type(); }

  // Dropout is active in training mode if the config's probability is not 0, with masks that depend on this seed alone.
  // Set it for each pass, from seed, rank and step; without a call it is 0.
  void set_dropout_seed(std::uint64_t seed) override { dropout_seed_ = seed; }

  // [T, C], after the last norm.
  at::Tensor hidden_states(const PackedBatch& batch, UnitRunner& runner);
  kernels::LossSum loss(const PackedBatch& batch, UnitRunner& runner, kernels::LinearCrossEntropy how = {});
  at::Tensor loss_sum(const PackedBatch& batch, UnitRunner& runner) final { return loss(batch, runner).sum; }
  std::string config_json() const final { return config().dump(); }
  // [R, V] of the given rows of the batch ([R] int64), or of all.
  at::Tensor logits(const PackedBatch& batch, UnitRunner& runner, const at::Tensor& rows = {});

  // Generation, without gradients: the prompts, then one token of every sequence at a time. Both return [B, V], the
  // logits after each sequence's last token.
  KeyValueCache make_cache(std::int64_t num_sequences, std::int64_t capacity) const;
  at::Tensor prefill(const PackedBatch& prompts, KeyValueCache& cache, UnitRunner& runner);
  at::Tensor next_logits(const at::Tensor& ids, KeyValueCache& cache, UnitRunner& runner);

 protected:
  explicit LanguageModel(const LanguageModelShape& shape) : shape_(shape) {}

  // [T] and [T] to [T, C], with embedding_weight() or, if it is tied to the head, with one name of a TiedTable.
  virtual at::Tensor embed(const at::Tensor& ids, const at::Tensor& positions, const at::Tensor& table,
                           bool is_tied) const = 0;
  virtual const at::Tensor& embedding_weight() const = 0;
  virtual at::Tensor run_block(std::size_t index, const at::Tensor& x, const Attend& attend,
                               const DropoutKeys& keys) const = 0;
  virtual at::Tensor finish(const at::Tensor& x) = 0;  // the last norm, if there is one
  virtual const at::Tensor& head_weight() const = 0;   // [V, C]
  virtual std::optional<at::Tensor> head_bias() const { return {}; }
  virtual std::optional<at::Tensor> slopes() const { return {}; }  // [H] float32 on the device: ALiBi's

  std::vector<Unit> units_;

 private:
  using AttendOfLayer = std::function<Attend(std::size_t layer, const DropoutKeys& keys)>;
  at::Tensor hidden_states(const PackedBatch& batch, UnitRunner& runner, const at::Tensor& table, bool is_tied);
  at::Tensor run_units(at::Tensor x, const AttendOfLayer& attend_of, UnitRunner& runner);
  AttendOfLayer packed_attention_of(const PackedBatch& batch) const;
  at::Tensor head(const at::Tensor& hidden) const;

  LanguageModelShape shape_;
  std::uint64_t dropout_seed_ = 0;
};

// By "model_type": "bloom" or "tessera-gpt"; `origin` is what messages call the config. `options`: device and type of
// the parameters. Throws UsageError if the type is unknown or the config is invalid.
std::shared_ptr<LanguageModel> make_language_model(const Json& config, const std::string& origin = "config.json",
                                                   const at::TensorOptions& options = at::kFloat);

}  // namespace tessera
