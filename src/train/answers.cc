#include "train/answers.h"

#include <ATen/core/grad_mode.h>
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

}  // namespace

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
  GenerationOptions generation;
  generation.max_new_tokens = options.max_new_tokens;
  generation.eos_ids = options.eos_ids;
  double num_answers = 0, exact = 0, f1 = 0;
  {
    const auto pass = engine.forward();  // which at its end releases what the strategy does not keep
    for (FlatUnit& unit : engine.units()) unit.begin_gather();
    for (FlatUnit& unit : engine.units()) unit.wait_gather();
    UnitRunner whole;
    std::vector<const QaPrompt*> own;
    for (std::size_t i = static_cast<std::size_t>(world.rank()); i < prompts.size();
         i += static_cast<std::size_t>(world.size())) {
      own.push_back(&prompts[i]);
    }
    for (std::size_t begin = 0; begin < own.size(); begin += static_cast<std::size_t>(options.batch_size)) {
      const std::size_t end = std::min(own.size(), begin + static_cast<std::size_t>(options.batch_size));
      std::vector<TokenIds> batch;
      for (std::size_t i = begin; i < end; ++i) batch.push_back(own[i]->ids);
      const std::vector<TokenIds> answers = generate(model, batch, generation, whole);
      for (std::size_t i = begin; i < end; ++i) {
        const AnswerScore score = score_answer(text_of(tokenizer, answers[i - begin]), own[i]->gold_answers);
        num_answers += 1;
        exact += score.exact_match;
        f1 += score.f1;
      }
    }
  }
  const std::vector<double> sums = sum_over_ranks(world, {num_answers, exact, f1});
  if (sums[0] == 0) throw Error("there is no question to answer");
  return {{"exact_match", sums[1] / sums[0]}, {"f1", sums[2] / sums[0]}};
}

}  // namespace tessera
