#include "model/language_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "kernels/attention.h"

namespace tessera {
namespace {

constexpr std::uint64_t kAttentionPlace = 0;  // of a unit's dropouts; the blocks number theirs from 1
constexpr std::uint64_t kEmbeddingPlace = 0;  // of the root's

}  // namespace

LanguageModel::LanguageModel(const DecoderDescription& decoder, Json config, const at::TensorOptions& options)
    : shape_(decoder.shape), names_(decoder.names), config_(std::move(config)) {
  const LayerMaker make{*this, shape_, options};
  const std::int64_t C = shape_.hidden_size, V = shape_.vocab_size;
  embedding_ = make.parameter(names_.embedding + ".weight", {V, C});
  if (shape_.num_learned_positions > 0) {
    positions_ = make.parameter(names_.positions + ".weight", {shape_.num_learned_positions, C});
  }
  embedding_norm_ = make.norm(names_.embedding_norm, C);
  torch::nn::Module& list = level_of(*this, names_.blocks);
  for (std::int64_t i = 0; i < shape_.num_layers; ++i) {
    const std::string index = std::to_string(i);
    blocks_.push_back(list.register_module(index, std::make_shared<DecoderBlock>(decoder, options)));
    units_.push_back({names_.blocks + "." + index, names_.block_class, blocks_.back().get()});
  }
  last_norm_ = make.norm(names_.last_norm, C);
  if (shape_.is_tied) {
    tied_names_ = {{names_.head + ".weight", names_.embedding + ".weight"}};
  } else {
    head_.weight = make.parameter(names_.head + ".weight", {V, C});
  }
  if (shape_.has_head_bias) head_bias_ = make.parameter(names_.head + ".bias", {V});
}

std::optional<std::int64_t> LanguageModel::max_positions() const {
  return shape_.num_learned_positions > 0 ? std::optional(shape_.num_learned_positions) : std::nullopt;
}

InitialValues LanguageModel::initial_values() const {
  InitialValues values;
  values.deviation = shape_.initializer_range;
  values.norm_weight = shape_.norm == NormKind::kRmsOnePlus ? 0 : 1;
  if (shape_.residual_initializer_scale != 1) {
    values.scale = shape_.residual_initializer_scale;
    values.scaled = {names_.output + ".weight", names_.down + ".weight"};
  }
  if (shape_.padding_id) {
    values.embedding = names_.embedding + ".weight";
    values.padding_id = *shape_.padding_id;
  }
  return values;
}

void LanguageModel::check_length(std::int64_t length) const {
  if (const auto most = max_positions(); most && length > *most) {
    throw Error(fmt::format("a sequence has {} tokens; the model has positions for {}", length, *most));
  }
}

std::optional<at::Tensor> LanguageModel::slopes() const {
  if (!shape_.has_alibi) return std::nullopt;
  if (!slopes_.defined() || slopes_.device() != device()) {
    slopes_ = at::tensor(alibi_slopes(shape_.num_heads), at::kFloat).to(device());
  }
  return slopes_;
}

LanguageModel::Pass LanguageModel::pass_over(const PackedBatch& batch) const {
  Pass pass;
  kernels::PackedAttention& how = pass.attend.how;
  how.cu_seqlens = batch.cu_seqlens;
  how.max_seqlen = batch.max_seqlen;
  how.alibi_slopes = slopes();
  how.scale = shape_.attention_scale;
  const bool by_length = std::ranges::any_of(shape_.rotaries, &Rotary::depends_on_length);
  const at::Tensor lengths = by_length ? row_lengths(batch) : at::Tensor();
  for (const Rotary& rotary : shape_.rotaries) pass.tables.push_back(rotary_table(rotary, batch.positions, lengths));
  return pass;
}

Attend LanguageModel::attend_of(const Pass& pass, std::size_t layer, const DropoutKeys& keys) const {
  Attend attend = pass.attend;
  attend.layer = static_cast<std::int64_t>(layer);
  const LayerShape& own = shape_.layers[layer];
  attend.how.window = own.window;
  if (own.rotary) attend.rotary = pass.tables[*own.rotary];
  if (keys.active() && shape_.attention_dropout > 0) {
    attend.how.training = true;
    attend.how.dropout = shape_.attention_dropout;
    attend.dropout_key = keys.at(kAttentionPlace);
  }
  return attend;
}

at::Tensor LanguageModel::embed(const at::Tensor& ids, const at::Tensor& positions, const at::Tensor& table,
                                bool is_tied) const {
  at::Tensor x = look_up(table, ids, is_tied, shape_.padding_id.value_or(-1));
  if (shape_.embedding_scale != 1) x = x * at::scalar_tensor(shape_.embedding_scale, x.options());
  if (positions_.defined()) x = x + look_up(positions_, positions, false);
  if (embedding_norm_.exists()) x = embedding_norm_(x);
  return dropout(x, shape_.embedding_dropout, dropout_keys().child(units_.size()), kEmbeddingPlace);
}

at::Tensor LanguageModel::run_units(at::Tensor x, const Pass& pass, UnitRunner& runner) {
  const DropoutKeys keys = dropout_keys();
  for (std::size_t i = 0; i < units_.size(); ++i) {
    // By value: a runner may call it again during backward, when the seed of the next pass is already set.
    const DropoutKeys mine = keys.child(i);
    x = runner.run(units_[i], x,
                   [block = blocks_[i], mine, attend = attend_of(pass, i, mine)](const at::Tensor& input) {
                     return block->forward(input, attend, mine);
                   });
  }
  return last_norm_.exists() ? last_norm_(x) : x;
}

at::Tensor LanguageModel::hidden_states(const PackedBatch& batch, UnitRunner& runner) {
  return hidden_states(batch, runner, embedding_, /*is_tied=*/false);
}

at::Tensor LanguageModel::hidden_states(const PackedBatch& batch, UnitRunner& runner, const at::Tensor& table,
                                        bool is_tied) {
  check_length(batch.max_seqlen);
  return run_units(embed(batch.input_ids, batch.positions, table, is_tied), pass_over(batch), runner);
}

kernels::LossSum LanguageModel::loss(const PackedBatch& batch, UnitRunner& runner, kernels::LinearCrossEntropy how) {
  how.counted = batch.counted;
  if (head_.exists()) {
    return kernels::linear_cross_entropy(hidden_states(batch, runner), head_weight(), head_bias_, batch.targets, how);
  }
  const TiedTable table = tie(head_weight());
  const at::Tensor hidden = hidden_states(batch, runner, table.for_rows, /*is_tied=*/true);
  how.parameter = head_weight();
  return kernels::linear_cross_entropy(hidden, table.for_head, head_bias_, batch.targets, how);
}

at::Tensor LanguageModel::head(const at::Tensor& hidden) const {
  return at::linear(hidden, head_weight(), head_bias_);
}

at::Tensor LanguageModel::logits(const PackedBatch& batch, UnitRunner& runner, const at::Tensor& rows) {
  const at::Tensor hidden = hidden_states(batch, runner);
  return head(rows.defined() ? hidden.index_select(0, rows) : hidden);
}

KeyValueCache LanguageModel::make_cache(std::int64_t num_sequences, std::int64_t capacity) const {
  return {{shape_.num_layers, num_sequences, shape_.num_key_value_heads, capacity, shape_.head_dim},
          at::device(device()).dtype(dtype())};
}

at::Tensor LanguageModel::prefill(const PackedBatch& prompts, KeyValueCache& cache, UnitRunner& runner) {
  const at::NoGradGuard no_grad;
  check_length(prompts.max_seqlen);
  cache.begin_prompt(prompts);
  Pass pass = pass_over(prompts);
  pass.attend.cache = &cache;
  const at::Tensor hidden = run_units(embed(prompts.input_ids, prompts.positions, embedding_, false), pass, runner);
  const at::Tensor last_rows = prompts.cu_seqlens.slice(0, 1).to(at::kLong) - 1;
  return head(hidden.index_select(0, last_rows));
}

at::Tensor LanguageModel::next_logits(const at::Tensor& ids, KeyValueCache& cache, UnitRunner& runner) {
  const at::NoGradGuard no_grad;
  check_length(cache.longest() + 1);
  cache.begin_token();
  Pass pass;
  pass.attend.how.alibi_slopes = slopes();
  pass.attend.how.scale = shape_.attention_scale;
  pass.attend.cache = &cache;
  pass.attend.is_prompt = false;
  for (const Rotary& rotary : shape_.rotaries) {
    pass.tables.push_back(rotary_table(rotary, cache.lengths(), cache.lengths() + 1));
  }
  const at::Tensor logits = head(run_units(embed(ids, cache.lengths(), embedding_, false), pass, runner));
  cache.end_token();
  return logits;
}

bool LanguageModel::must_refill(const KeyValueCache& cache) const {
  return std::ranges::any_of(shape_.rotaries, [&](const Rotary& rotary) {
    return rotary.refills_cache && cache.passes_next(rotary.original_positions);
  });
}

std::vector<float> alibi_slopes(std::int64_t num_heads) {
  std::int64_t whole = 1;  // the largest power of two up to num_heads
  while (whole * 2 <= num_heads) whole *= 2;
  const auto slope = [](std::int64_t heads, std::int64_t power) {
    // The base is rounded to float before it is raised, as the original's tensors are.
    const auto base = static_cast<float>(std::exp2(-8.0 / static_cast<double>(heads)));
    return static_cast<float>(std::pow(static_cast<double>(base), static_cast<double>(power)));
  };
  std::vector<float> slopes;
  for (std::int64_t i = 1; i <= whole; ++i) slopes.push_back(slope(whole, i));
  for (std::int64_t i = 1; i <= num_heads - whole; ++i) slopes.push_back(slope(2 * whole, 2 * i - 1));
  return slopes;
}

}  // namespace tessera
