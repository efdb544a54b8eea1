#include "jobs/answers.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/log.h"
#include "data/text/qa_sequence.h"
#include "jobs/run_plan.h"
#include "model/run_modes.h"

namespace tessera {
namespace {

// The memory that a rank can use in addition to its current tensors. None: unknown.
std::optional<std::int64_t> memory_left(const World& world) {
  const std::optional<std::int64_t> memory = memory_of_rank(world);
  if (!memory || !world.device().is_cuda()) return memory;  // on a host it is already what is left
  const auto stats = at::accelerator::getDeviceStats(world.device().index());
  constexpr auto kAll = static_cast<std::size_t>(at::CachingAllocator::StatType::AGGREGATE);
  return std::max<std::int64_t>(0, *memory - stats.allocated_bytes[kAll].current);
}

// Whether every rank keeps the whole model between uses, too.
bool keeps_whole(const Engine& engine) {
  return !engine.placement().in_shards(engine.groups().num_shards()).parameters.is_split();
}

std::int64_t whole_bytes(Engine& engine) {
  const auto element_bytes = static_cast<std::int64_t>(c10::elementSize(engine.options().types.compute));
  std::int64_t bytes = 0;
  for (const FlatUnit& unit : engine.units()) bytes += unit.layout().padded_numel() * element_bytes;
  return bytes;
}

// Ranks go through the units together, however many passes each of them needs: before a pass they agree on whether any
// rank still has work.
class InStep : public UnitRunner {
 public:
  InStep(World& world, Engine& engine, const UnitModel& model) : world_(world), engine_(engine), model_(model) {}

  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override {
    if (unit.module == model_.units().front().module) anybody_works(true);
    return engine_.run(unit, input, body);
  }

  // Takes part until all ranks are done.
  void finish() {
    while (anybody_works(false)) pass_idly(model_, engine_, world_.device());
  }

 private:
  bool anybody_works(bool own) {
    if (world_.size() == 1) return own;
    const at::Tensor flag = at::full({1}, own ? 1 : 0, at::dtype(at::kInt).device(world_.device()));
    world_.all().all_reduce(flag, ReduceOp::MAX, "generation")->wait();
    return flag.item<int>() > 0;
  }

  World& world_;
  Engine& engine_;
  const UnitModel& model_;
};

// Fills this rank's places of `answers`.
void answer_own(const World& world, LanguageModel& model, const std::vector<TokenIds>& prompts,
                const AnswerOptions& options, UnitRunner& runner, std::vector<TokenIds>& answers) {
  GenerationOptions generation;
  generation.max_new_tokens = options.max_new_tokens;
  generation.eos_ids = options.eos_ids;
  for (const auto& places : answer_batches(prompts, model, options, world.rank(), world.size())) {
    std::vector<TokenIds> batch;
    for (const std::size_t place : places) batch.push_back(prompts[place]);
    std::vector<TokenIds> written = generate(model, batch, generation, runner);
    for (std::size_t i = 0; i < places.size(); ++i) answers[places[i]] = std::move(written[i]);
  }
}

// Gives every rank all answers. Ids are not negative: the maximum of -1 and an id is the id.
void share(World& world, std::int64_t max_new_tokens, std::vector<TokenIds>& answers) {
  if (world.size() == 1 || answers.empty()) return;
  at::Tensor ids = at::full({std::ssize(answers), max_new_tokens}, -1, at::kLong);
  auto* begin = ids.mutable_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    std::copy(answers[i].begin(), answers[i].end(), begin + static_cast<std::int64_t>(i) * max_new_tokens);
  }
  ids = ids.to(world.device());
  world.all().all_reduce(ids, ReduceOp::MAX, "answers")->wait();
  ids = ids.cpu();
  begin = ids.mutable_data_ptr<std::int64_t>();
  for (TokenIds& own : answers) {
    own.assign(begin, std::find(begin, begin + max_new_tokens, -1));
    begin += max_new_tokens;
  }
}

// Per token of a batch's longest sequence, per sequence, and per token of the prompts, which are packed: the keys and
// values of all layers; scores and probabilities of one; the logits, with a float32 copy; and in prefill the widest
// layer, whose qkv, gelu and residual are about 14 times the hidden size.
std::int64_t batch_bytes(const LanguageModel& model, std::int64_t count, std::int64_t longest, std::int64_t num_tokens,
                         std::int64_t max_new_tokens) {
  const DecoderShape& shape = model.shape();
  const auto element_bytes = static_cast<std::int64_t>(c10::elementSize(model.dtype()));
  const std::int64_t length = longest + max_new_tokens;
  return count * length * (2 * shape.num_layers * shape.key_width() * element_bytes + 12 * shape.num_heads) +
         count * shape.vocab_size * (element_bytes + 4) + num_tokens * shape.hidden_size * 14 * element_bytes;
}

}  // namespace

AnswerOptions answer_options(const World& world, std::vector<std::int64_t> eos_ids, std::int64_t max_new_tokens) {
  AnswerOptions options{.max_new_tokens = max_new_tokens, .eos_ids = std::move(eos_ids)};
  if (const auto memory = memory_left(world)) {
    options.memory_bytes = *memory / 2;
    options.batch_bytes = *memory / 4;
  }
  return options;
}

void announce_generation(World& world, Engine& engine) {
  if (keeps_whole(engine)) return;
  const bool is_whole = can_hold_whole(world, engine, answer_options(world, {}, 0).memory_bytes);
  if (world.rank() != 0) return;
  log_info("generating answers: {}", is_whole ? "the full model is on every rank"
                                              : "the full model does not fit, so each token gathers it block by block");
}

bool can_hold_whole(World& world, Engine& engine, std::optional<std::int64_t> memory_bytes) {
  const bool can = keeps_whole(engine) || !memory_bytes || whole_bytes(engine) <= *memory_bytes;
  return sum_over_ranks(world, {can ? 1.0 : 0.0}).front() == world.size();
}

std::vector<QaPrompt> prompts_of(const TokenStore& tokens, const std::vector<SquadRow>& rows) {
  if (tokens.size() != std::ssize(rows)) {
    throw Error(fmt::format("{} rows of tokens for {} questions", tokens.size(), rows.size()));
  }
  std::vector<QaPrompt> prompts;
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    const auto ids = tokens.ids(row);
    const std::vector<std::int32_t> targets = tokens.targets(row);
    const auto first = std::ranges::find_if(targets, [](std::int32_t id) { return id != kIgnoredTarget; });
    // The position that has to predict the answer's first token is the prompt's last.
    const auto length = std::min<std::ptrdiff_t>(first - targets.begin() + 1, std::ssize(ids));
    const SquadRow& question = rows[static_cast<std::size_t>(row)];
    QaPrompt& prompt = prompts.emplace_back();
    prompt.id = question.id;
    prompt.ids.assign(ids.begin(), ids.begin() + length);
    for (const SquadAnswer& answer : question.answers) prompt.gold_answers.push_back(answer.text);
    if (prompt.gold_answers.empty()) prompt.gold_answers.emplace_back(qa_answer(question));
  }
  return prompts;
}

std::vector<std::vector<std::size_t>> answer_batches(const std::vector<TokenIds>& prompts, const LanguageModel& model,
                                                     const AnswerOptions& options, int rank, int num_ranks) {
  std::vector<std::size_t> by_length(prompts.size());
  std::iota(by_length.begin(), by_length.end(), 0);
  std::ranges::stable_sort(by_length,
                           [&](std::size_t a, std::size_t b) { return prompts[a].size() > prompts[b].size(); });
  std::vector<std::vector<std::size_t>> batches;
  std::int64_t longest = 0, num_tokens = 0;
  // Dealt out one by one, so that ranks have prompts of similar lengths.
  for (std::size_t i = static_cast<std::size_t>(rank); i < by_length.size(); i += static_cast<std::size_t>(num_ranks)) {
    const std::int64_t length = std::ssize(prompts[by_length[i]]);
    const bool fits = !batches.empty() && batches.back().size() < kMostPrompts &&
                      batch_bytes(model, std::ssize(batches.back()) + 1, longest, num_tokens + length,
                                  options.max_new_tokens) <= options.batch_bytes;
    if (!fits) {
      batches.emplace_back();
      longest = length;
      num_tokens = 0;
    }
    batches.back().push_back(by_length[i]);
    num_tokens += length;
  }
  return batches;
}

std::vector<TokenIds> answer(World& world, Engine& engine, LanguageModel& model, const std::vector<TokenIds>& prompts,
                             const AnswerOptions& options) {
  const at::NoGradGuard no_gradients;
  std::vector<TokenIds> answers(prompts.size());
  const bool is_whole = can_hold_whole(world, engine, options.memory_bytes);
  {
    const auto pass = engine.forward();  // which at its end releases what the strategy does not keep
    if (is_whole) {
      for (FlatUnit& unit : engine.units()) unit.begin_gather();
      for (FlatUnit& unit : engine.units()) unit.wait_gather();
      UnitRunner runner;
      answer_own(world, model, prompts, options, runner, answers);
    } else {
      InStep runner(world, engine, model);
      answer_own(world, model, prompts, options, runner, answers);
      runner.finish();
    }
  }
  share(world, options.max_new_tokens, answers);
  return answers;
}

std::vector<std::string> answer(World& world, Engine& engine, LanguageModel& model, const Tokenizer& tokenizer,
                                const std::vector<QaPrompt>& prompts, const AnswerOptions& options) {
  std::vector<TokenIds> ids;
  for (const QaPrompt& prompt : prompts) ids.push_back(prompt.ids);
  std::vector<std::string> texts;
  for (const TokenIds& each : answer(world, engine, model, ids, options)) {
    texts.push_back(
        tokenizer.decode(std::vector<std::int32_t>(each.begin(), each.end()), /*skip_special_tokens=*/true));
  }
  return texts;
}

LogRecord answer_metrics(const std::vector<std::string>& answers, const std::vector<QaPrompt>& prompts) {
  if (prompts.empty()) throw Error("there is no question to answer");
  AnswerScore sums;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const AnswerScore score = score_answer(answers.at(i), prompts[i].gold_answers);
    sums.exact_match += score.exact_match;
    sums.f1 += score.f1;
  }
  const auto count = static_cast<double>(prompts.size());
  return {{"exact_match", sums.exact_match / count}, {"f1", sums.f1 / count}};
}

}  // namespace tessera
