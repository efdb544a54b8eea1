#include "model/generation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/error.h"
#include "model/run_modes.h"

namespace tessera {
namespace {

constexpr std::int64_t kNoToken = -1;
constexpr double kOut = -std::numeric_limits<double>::infinity();

void keep_top_k(at::Tensor& scores, std::int64_t k) {
  const std::int64_t kept = std::min(k, scores.size(-1));
  const at::Tensor least = std::get<0>(at::topk(scores, kept)).slice(-1, kept - 1);
  scores.masked_fill_(scores < least, kOut);
}

void keep_top_p(at::Tensor& scores, double p) {
  const auto [sorted, order] = at::sort(scores, /*stable=*/false, /*dim=*/-1, /*descending=*/false);
  at::Tensor removed = at::softmax(sorted, -1).cumsum(-1) <= 1 - p;
  removed.slice(-1, removed.size(-1) - 1).fill_(false);  // the best token stays
  scores.masked_fill_(removed.scatter(-1, order, removed), kOut);
}

void check_sampling(const Sampling& sampling) {
  if (!(sampling.temperature > 0)) {
    throw UsageError(fmt::format("temperature {}: expected a number above 0 (for the best token, turn sampling off)",
                                 sampling.temperature));
  }
  if (sampling.top_k < 0) throw UsageError(fmt::format("top_k {}: expected 0 (all) or more", sampling.top_k));
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) {
    throw UsageError(fmt::format("top_p {}: expected a number above 0 and at most 1", sampling.top_p));
  }
}

void check_prompts(const LanguageModel& model, const std::vector<TokenIds>& prompts, const GenerationOptions& options) {
  check_sampling(options.sampling);
  if (options.max_new_tokens < 1) {
    throw UsageError(fmt::format("max_new_tokens {}: expected 1 or more", options.max_new_tokens));
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty()) throw UsageError(fmt::format("prompt {} has no tokens: it needs at least one", i));
    for (const std::int64_t id : prompts[i]) {
      if (id >= 0 && id < model.vocab_size()) continue;
      throw UsageError(fmt::format(
          "prompt {} has token {}, which is beyond the model's vocabulary of {}: tokenizer and model do not "
          "match",
          i, id, model.vocab_size()));
    }
    const auto length = static_cast<std::int64_t>(prompts[i].size()) + options.max_new_tokens;
    if (model.max_positions() && length - 1 > *model.max_positions()) {
      throw UsageError(fmt::format("prompt {} has {} tokens and needs {} more, but the model has positions for {}", i,
                                   prompts[i].size(), options.max_new_tokens, *model.max_positions()));
    }
  }
}

// New tokens per sequence that the cache first has room for, beside the prompt; the room doubles whenever it is full.
// Most texts end long before a generous max_new_tokens, whose memory is then never allocated.
constexpr std::int64_t kFirstNewTokens = 256;

// Of the batch: a sequence that is still being generated, or that has ended.
struct Row {
  std::size_t sequence;
  bool has_ended = false;
};

// Appends each row's token to its sequence; rows that have ended stay in the batch but append nothing.
void append_tokens(const at::Tensor& tokens, const std::vector<std::int64_t>& eos_ids, std::vector<Row>& rows,
                   std::vector<TokenIds>& written) {
  const at::Tensor host = tokens.cpu();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].has_ended) continue;
    TokenIds& sequence = written[rows[i].sequence];
    const std::int64_t id = host.const_data_ptr<std::int64_t>()[i];
    if (id == kNoToken) {
      throw Error(fmt::format(
          "generation: after {} new tokens of prompt {} the model's logits are NaN or infinite: the weights "
          "are damaged, or too large for the type (float16 ends at 65504); try float32",
          sequence.size(), rows[i].sequence));
    }
    sequence.push_back(id);
    rows[i].has_ended = std::ranges::find(eos_ids, id) != eos_ids.end();
  }
}

std::vector<TokenIds> whole_sequences(const std::vector<Row>& rows, const std::vector<TokenIds>& prompts,
                                      const std::vector<TokenIds>& written) {
  std::vector<TokenIds> whole;
  for (const Row& row : rows) {
    whole.push_back(prompts[row.sequence]);
    whole.back().insert(whole.back().end(), written[row.sequence].begin(), written[row.sequence].end());
  }
  return whole;
}

// [B] int64 from scores [B, V]; kNoToken for a row with a value that is not finite, found without waiting for a GPU.
// `generator` is used if do_sample is set, with one draw for all rows, as in torch.multinomial.
at::Tensor choose_tokens(const at::Tensor& scores, const Sampling& sampling, at::Generator& generator) {
  const at::Tensor broken = at::isfinite(scores).all(-1).logical_not();
  if (!sampling.do_sample) return at::argmax(scores, -1).masked_fill_(broken, kNoToken);
  // multinomial kills a GPU's context if a probability is NaN: broken rows are drawn from something else.
  const at::Tensor sound = scores.masked_fill(broken.unsqueeze(1), 0);
  const at::Tensor probabilities = at::softmax(filter_scores(sound, sampling), -1);
  return at::multinomial(probabilities, 1, /*replacement=*/false, generator).squeeze(1).masked_fill_(broken, kNoToken);
}

at::Generator make_generator(const at::Device& device, std::uint64_t seed) {
  if (device.is_cpu()) return at::detail::createCPUGenerator(seed);
  at::Generator generator = at::detail::getCUDAHooks().getNewGenerator(device.index());
  generator.set_current_seed(seed);
  return generator;
}

}  // namespace

PackedBatch pack_sequences(const std::vector<TokenIds>& sequences, const at::Device& device) {
  if (sequences.empty()) throw Error("packing: there are no sequences");
  std::vector<std::int64_t> ids, positions;
  std::vector<std::int32_t> starts{0};
  std::int64_t max_seqlen = 0;
  for (const TokenIds& sequence : sequences) {
    if (sequence.empty()) {
      throw Error(fmt::format("packing: sequence {} is empty; it needs at least one token", starts.size() - 1));
    }
    ids.insert(ids.end(), sequence.begin(), sequence.end());
    for (std::int64_t i = 0; i < std::ssize(sequence); ++i) positions.push_back(i);
    max_seqlen = std::max(max_seqlen, std::ssize(sequence));
    starts.push_back(static_cast<std::int32_t>(ids.size()));
  }
  const auto on_device = [&](const auto& values, at::ScalarType type) {
    return at::tensor(values, at::dtype(type)).to(device);
  };
  const at::Tensor packed = on_device(ids, at::kLong);
  return {packed,
          on_device(positions, at::kLong),
          at::full_like(packed, kIgnoredTarget),
          on_device(starts, at::kInt),
          max_seqlen,
          /*num_counted=*/0};
}

at::Tensor filter_scores(const at::Tensor& scores, const Sampling& sampling) {
  at::Tensor filtered = scores.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  if (sampling.temperature != 1) filtered.div_(sampling.temperature);
  if (sampling.top_k > 0) keep_top_k(filtered, sampling.top_k);
  if (sampling.top_p < 1) keep_top_p(filtered, sampling.top_p);
  return filtered;
}

std::vector<TokenIds> generate(LanguageModel& model, const std::vector<TokenIds>& prompts,
                               const GenerationOptions& options, UnitRunner& runner) {
  check_prompts(model, prompts, options);
  std::vector<TokenIds> written(prompts.size());
  if (prompts.empty()) return written;
  const Evaluating evaluating(model);
  const at::NoGradGuard no_gradients;
  at::Generator generator = make_generator(model.device(), options.seed);
  const PackedBatch packed = pack_sequences(prompts, model.device());
  const std::int64_t max_length = packed.max_seqlen + options.max_new_tokens - 1;  // the last token is never fed back
  KeyValueCache cache =
      model.make_cache(std::ssize(prompts), std::min(max_length, packed.max_seqlen + kFirstNewTokens));
  std::vector<Row> rows;
  for (std::size_t i = 0; i < prompts.size(); ++i) rows.push_back({i});
  at::Tensor logits = model.prefill(packed, cache, runner);
  for (std::int64_t i = 0;; ++i) {
    at::Tensor tokens = choose_tokens(logits, options.sampling, generator);
    append_tokens(tokens, options.eos_ids, rows, written);
    const auto num_alive = std::ranges::count(rows, false, &Row::has_ended);
    if (num_alive == 0 || i + 1 == options.max_new_tokens) return written;
    // Ended rows cost as much as the others, so they are dropped once they make up half. Not when sampling: the draws
    // of a row must not depend on when the others end.
    if (!options.sampling.do_sample && num_alive * 2 <= std::ssize(rows)) {
      std::vector<std::int64_t> kept;
      for (std::int64_t row = 0; row < std::ssize(rows); ++row) {
        if (!rows[static_cast<std::size_t>(row)].has_ended) kept.push_back(row);
      }
      std::erase_if(rows, [](const Row& row) { return row.has_ended; });
      cache.keep(kept);
      tokens = tokens.index_select(0, at::tensor(kept, at::kLong).to(tokens.device()));
    }
    if (cache.longest() == cache.capacity()) cache.grow(std::min(max_length, 2 * cache.capacity()));
    if (model.must_refill(cache)) {
      logits = model.prefill(pack_sequences(whole_sequences(rows, prompts, written), model.device()), cache, runner);
    } else {
      logits = model.next_logits(tokens, cache, runner);
    }
  }
}

}  // namespace tessera
