#include "model/language_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <array>

#include "core/error.h"
#include "core/text.h"
#include "kernels/attention.h"
#include "kernels/layer_norm.h"
#include "kernels/sizes.h"
#include "model/bloom.h"
#include "model/gpt.h"
#include "model/step_memory.h"

namespace tessera {
namespace {

constexpr std::uint64_t kAttentionPlace = 0;  // of a unit's dropouts; the blocks number theirs from 1

void check_length(const LanguageModelShape& shape, std::int64_t length) {
  if (shape.max_positions && length > *shape.max_positions) {
    throw Error(fmt::format("a sequence has {} tokens; the model has positions for {}", length, *shape.max_positions));
  }
}

// The families of language models, by the model_type of their config.json.
struct Family {
  const char* model_type;
  std::shared_ptr<LanguageModel> (*make)(const Json& config, const std::string& origin,
                                         const at::TensorOptions& options);
  std::unique_ptr<StepMemory> (*step_memory)(const Json& config, const std::string& origin, const StepShape& shape);
};

template <typename Model, typename Config>
std::shared_ptr<LanguageModel> make(const Json& config, const std::string& origin, const at::TensorOptions& options) {
  return std::make_shared<Model>(Config::from_json(config, origin), options);
}

constexpr std::array kFamilies = {
    Family{"bloom", make<Bloom, BloomConfig>, bloom_step_memory},
    Family{"tessera-gpt", make<Gpt, GptConfig>, gpt_step_memory},
};

const Family& family_of(const Json& config, const std::string& origin) {
  const JsonSource source{&config, origin};
  const JsonReader reader(source);
  const std::string type = reader.text({"model_type"});
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    if (type == family.model_type) return family;
    names.emplace_back(family.model_type);
  }
  reader.at("model_type").refuse_value(join(names, " or "));
}

}  // namespace

LanguageModel::AttendOfLayer LanguageModel::packed_attention_of(const PackedBatch& batch) const {
  kernels::PackedAttention how;
  how.cu_seqlens = batch.cu_seqlens;
  how.max_seqlen = batch.max_seqlen;
  how.alibi_slopes = slopes();
  return [how, probability = shape_.attention_dropout](std::size_t, const DropoutKeys& keys) -> Attend {
    if (!keys.active() || probability == 0) {
      return {[how](const at::Tensor& qkv, std::int64_t parts_dim) {
                return kernels::packed_attention(qkv, parts_dim, how);
              },
              how};
    }
    kernels::PackedAttention dropping = how;
    dropping.training = true;
    dropping.dropout = probability;
    return {[dropping, key = keys.at(kAttentionPlace)](const at::Tensor& qkv, std::int64_t parts_dim) {
      const SeededGenerator seeded(qkv.device(), key);
      return kernels::packed_attention(qkv, parts_dim, dropping);
    }};
  };
}

void LanguageModelShape::read_rest(const JsonReader& reader) {
  if (hidden_size % num_heads != 0) {
    reader.refuse_member("hidden_size", fmt::format("{} is not a multiple of the {} heads", hidden_size, num_heads));
  }
  layer_norm_epsilon = reader.real({"layer_norm_epsilon"}, 0, 1, layer_norm_epsilon);
  initializer_range = reader.real({"initializer_range"}, 0, 1e3, initializer_range);
}

void LanguageModel::add_block(torch::nn::Module& list, const std::string& prefix, const std::string& kind,
                              std::shared_ptr<LanguageBlock> block) {
  const std::string index = std::to_string(units_.size());
  list.register_module(index, block);
  units_.push_back({prefix + index, kind, block.get()});
  blocks_.push_back(std::move(block));
}

std::optional<at::Tensor> LanguageModel::slopes() const {
  if (!shape_.has_alibi) return std::nullopt;
  if (!slopes_.defined() || slopes_.device() != device()) {
    slopes_ = at::tensor(alibi_slopes(shape_.num_heads), at::kFloat).to(device());
  }
  return slopes_;
}

at::Tensor LanguageModel::run_units(at::Tensor x, const AttendOfLayer& attend_of, UnitRunner& runner) {
  const DropoutKeys keys = is_training() ? DropoutKeys(dropout_seed_) : DropoutKeys();
  for (std::size_t i = 0; i < units_.size(); ++i) {
    // By value: a runner may call it again during backward, when the seed of the next pass is already set.
    const DropoutKeys mine = keys.child(i);
    x = runner.run(units_[i], x, [this, i, mine, attend = attend_of(i, mine)](const at::Tensor& input) {
      return blocks_[i]->forward(input, attend, mine);
    });
  }
  if (!last_norm_) return x;
  return kernels::layer_norm(x, last_norm_->weight, last_norm_->bias, shape_.layer_norm_epsilon);
}

at::Tensor LanguageModel::hidden_states(const PackedBatch& batch, UnitRunner& runner) {
  return hidden_states(batch, runner, embedding_->weight, /*is_tied=*/false);
}

at::Tensor LanguageModel::hidden_states(const PackedBatch& batch, UnitRunner& runner, const at::Tensor& table,
                                        bool is_tied) {
  check_length(shape_, batch.max_seqlen);
  const at::Tensor embedded = embed(batch.input_ids, batch.positions, table, is_tied);
  return run_units(embedded, packed_attention_of(batch), runner);
}

kernels::LossSum LanguageModel::loss(const PackedBatch& batch, UnitRunner& runner, kernels::LinearCrossEntropy how) {
  how.counted = batch.counted;
  if (head_) {
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
  return {{shape_.num_layers, num_sequences, shape_.num_heads, capacity, shape_.head_dim()},
          at::device(device()).dtype(dtype())};
}

at::Tensor LanguageModel::prefill(const PackedBatch& prompts, KeyValueCache& cache, UnitRunner& runner) {
  const at::NoGradGuard no_grad;
  check_length(shape_, prompts.max_seqlen);
  cache.begin_prompt(prompts);
  const AttendOfLayer packed = packed_attention_of(prompts);
  const AttendOfLayer keeping = [&](std::size_t layer, const DropoutKeys& keys) -> Attend {
    return {[&cache, layer, attend = packed(layer, keys)](const at::Tensor& qkv, std::int64_t parts_dim) {
      cache.store(static_cast<std::int64_t>(layer), qkv.select(parts_dim, 1), qkv.select(parts_dim, 2));
      return attend(qkv, parts_dim);
    }};
  };
  const at::Tensor hidden =
      run_units(embed(prompts.input_ids, prompts.positions, embedding_->weight, false), keeping, runner);
  const at::Tensor last_rows = prompts.cu_seqlens.slice(0, 1).to(at::kLong) - 1;
  return head(hidden.index_select(0, last_rows));
}

at::Tensor LanguageModel::next_logits(const at::Tensor& ids, KeyValueCache& cache, UnitRunner& runner) {
  const at::NoGradGuard no_grad;
  check_length(shape_, cache.longest() + 1);
  cache.begin_token(slopes());
  const AttendOfLayer cached = [&](std::size_t layer, const DropoutKeys&) -> Attend {
    return {[&cache, layer](const at::Tensor& qkv, std::int64_t parts_dim) {
      return cache.attend(static_cast<std::int64_t>(layer), qkv.select(parts_dim, 0), qkv.select(parts_dim, 1),
                          qkv.select(parts_dim, 2));
    }};
  };
  const at::Tensor logits = head(run_units(embed(ids, cache.lengths(), embedding_->weight, false), cached, runner));
  cache.end_token();
  return logits;
}

std::shared_ptr<LanguageModel> make_language_model(const Json& config, const std::string& origin,
                                                   const at::TensorOptions& options) {
  return family_of(config, origin).make(config, origin, options);
}

std::unique_ptr<StepMemory> language_step_memory(const Json& config, const std::string& origin,
                                                 const StepShape& shape) {
  return family_of(config, origin).step_memory(config, origin, shape);
}

}  // namespace tessera
