#include "train/answers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "data/text/qa_sequence.h"
#include "train/rank_sums.h"
#include "train/squad_metrics.h"

namespace tessera {
namespace {

std::string text_of(const Tokenizer& tokenizer, const TokenIds& ids) {
  return tokenizer.decode(std::vector<std::int32_t>(ids.begin(), ids.end()), /*skip_special_tokens=*/true);
}

std::int64_t whole_bytes(Engine& engine) {
  const auto element_bytes = static_cast<std::int64_t>(c10::elementSize(engine.options().types.compute));
  std::int64_t bytes = 0;
  for (const FlatUnit& unit : engine.units()) bytes += unit.layout().padded_numel() * element_bytes;
  return bytes;
}

// Ranks pass through the units together, however many passes each of them needs: before a pass they tell each other
// whether anybody still has work.
class InStep : public UnitRunner {
 public:
  InStep(World& world, Engine& engine, const UnitModel& model) : world_(world), engine_(engine), model_(model) {}

  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override {
    if (unit.module == model_.units().front().module) anybody_works(true);
    return engine_.run(unit, input, body);
  }

  // Goes along until all have done their part.
  void finish() {
    const at::Tensor nothing = at::zeros({1}, at::device(world_.device()));
    while (anybody_works(false)) {
      for (const Unit& unit : model_.units()) {
        engine_.run(unit, nothing, [](const at::Tensor& input) { return input; });
      }
    }
  }

 private:
  bool anybody_works(bool own) {
    const at::Tensor flag = at::full({1}, own ? 1 : 0, at::dtype(at::kInt).device(world_.device()));
    world_.all().all_reduce(flag, ReduceOp::MAX, "generation")->wait();
    return flag.item<int>() > 0;
  }

  World& world_;
  Engine& engine_;
  const UnitModel& model_;
};

// Sums over this rank's part of the prompts: answers, exact matches, F1.
std::vector<double> answer_own(const World& world, LanguageModel& model, const Tokenizer& tokenizer,
                               const std::vector<QaPrompt>& prompts, const AnswerOptions& options, UnitRunner& runner) {
  GenerationOptions generation;
  generation.max_new_tokens = options.max_new_tokens;
  generation.eos_ids = options.eos_ids;
  std::vector<const QaPrompt*> own;
  for (std::size_t i = static_cast<std::size_t>(world.rank()); i < prompts.size();
       i += static_cast<std::size_t>(world.size())) {
    own.push_back(&prompts[i]);
  }
  std::vector<double> sums = {0, 0, 0};
  for (std::size_t begin = 0; begin < own.size(); begin += static_cast<std::size_t>(options.batch_size)) {
    const std::size_t end = std::min(own.size(), begin + static_cast<std::size_t>(options.batch_size));
    std::vector<TokenIds> batch;
    for (std::size_t i = begin; i < end; ++i) batch.push_back(own[i]->ids);
    const std::vector<TokenIds> answers = generate(model, batch, generation, runner);
    for (std::size_t i = begin; i < end; ++i) {
      const AnswerScore score = score_answer(text_of(tokenizer, answers[i - begin]), own[i]->gold_answers);
      sums[0] += 1;
      sums[1] += score.exact_match;
      sums[2] += score.f1;
    }
  }
  return sums;
}

}  // namespace

bool can_hold_whole(World& world, Engine& engine, std::optional<std::int64_t> memory_bytes) {
  const bool can = !engine.placement().parameters_split || !memory_bytes || whole_bytes(engine) <= *memory_bytes;
  return sum_over_ranks(world, {can ? 1.0 : 0.0}).front() == world.size();
}

std::vector<QaPrompt> prompts_of(const TokenStore& tokens, const std::vector<SquadRow>& rows) {
  if (tokens.size() != std::ssize(rows)) {
    throw Error(fmt::format("{} rows of tokens for {} questions", tokens.size(), rows.size()));
  }
  std::vector<QaPrompt> prompts;
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    const auto ids = tokens.ids(row), targets = tokens.targets(row);
    const auto first = std::find_if(targets.begin(), targets.end(), [](std::int32_t id) { return id != kNoTarget; });
    // The position that has to predict the answer's first token is the prompt's last.
    const auto length = std::min<std::ptrdiff_t>(first - targets.begin() + 1, std::ssize(ids));
    QaPrompt& prompt = prompts.emplace_back();
    prompt.ids.assign(ids.begin(), ids.begin() + length);
    const SquadRow& question = rows[static_cast<std::size_t>(row)];
    for (const SquadAnswer& answer : question.answers) prompt.gold_answers.push_back(answer.text);
    if (prompt.gold_answers.empty()) prompt.gold_answers.emplace_back(qa_answer(question));
  }
  return prompts;
}

LogRecord answer_metrics(World& world, Engine& engine, LanguageModel& model, const Tokenizer& tokenizer,
                         const std::vector<QaPrompt>& prompts, const AnswerOptions& options) {
  const at::NoGradGuard no_gradients;
  const bool is_whole = world.size() == 1 || can_hold_whole(world, engine, options.memory_bytes);
  std::vector<double> sums;
  {
    const auto pass = engine.forward();  // which at its end releases what the strategy does not keep
    if (is_whole) {
      for (FlatUnit& unit : engine.units()) unit.begin_gather();
      for (FlatUnit& unit : engine.units()) unit.wait_gather();
      UnitRunner runner;
      sums = answer_own(world, model, tokenizer, prompts, options, runner);
    } else {
      InStep runner(world, engine, model);
      sums = answer_own(world, model, tokenizer, prompts, options, runner);
      runner.finish();
    }
  }
  sums = sum_over_ranks(world, sums);
  if (sums[0] == 0) throw Error("there is no question to answer");
  return {{"exact_match", sums[1] / sums[0]}, {"f1", sums[2] / sums[0]}};
}

}  // namespace tessera
