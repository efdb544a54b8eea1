#include "jobs/answers.h"

#include <gtest/gtest.h>

#include <set>

#include "support/small_language_model.h"
#include "train/step_setup.h"

namespace tessera {
namespace {

const std::string kData = TESSERA_TEST_DATA_FOLDER;

// Prompts of different lengths, whose gold answer is what the model says, except the last, which is answered wrong.
std::vector<QaPrompt> prompts_with_answers(LanguageModel& model, const Tokenizer& tokenizer, std::int64_t eos_id) {
  std::vector<QaPrompt> prompts;
  UnitRunner runner;
  for (std::int64_t i = 0; i < 5; ++i) {
    QaPrompt& prompt = prompts.emplace_back();
    for (std::int64_t k = 0; k <= i; ++k) prompt.ids.push_back((7 * i + 3 * k + 5) % 50);
    GenerationOptions options;
    options.max_new_tokens = 6;
    options.eos_ids = {eos_id};
    const TokenIds ids = generate(model, {prompt.ids}, options, runner).front();
    prompt.gold_answers.push_back(tokenizer.decode(std::vector<std::int32_t>(ids.begin(), ids.end()), true));
  }
  prompts.back().gold_answers = {"something that it does not say"};
  return prompts;
}

LogRecord metrics_of(World& world, const Tokenizer& tokenizer, const std::string& strategy,
                     std::optional<std::int64_t> memory_bytes) {
  const auto model = small_bloom(0, 3, /*is_tied=*/false);
  const std::vector<QaPrompt> prompts = prompts_with_answers(*model, tokenizer, 11);
  TrainSettings settings;
  settings.spread.strategy = strategy;
  settings.loop.merge_accumulation = MergeAccumulation::kOff;
  TrainStep step(world, *model, model->units(), step_options(settings, *model, world.device()));
  Engine& engine = step.engine();
  EXPECT_EQ(can_hold_whole(world, engine, memory_bytes), !memory_bytes || strategy == "zero1");
  // One byte per batch: every prompt is a batch.
  const AnswerOptions options{6, {11}, memory_bytes, memory_bytes.value_or(std::int64_t{1} << 30)};
  return answer_metrics(answer(world, engine, *model, tokenizer, prompts, options), prompts);
}

// Three ranks have two, two and one of five prompts, which end after different numbers of tokens.
TEST(Answers, AreTheSameOfAWholeModelAndBlockByBlock) {
  const Tokenizer tokenizer = Tokenizer::load(kData + "/squad/tokenizer");
  for (const char* strategy : {"full_shard", "shard_grad_op", "zero1"}) {
    for (const std::optional<std::int64_t> memory_bytes :
         {std::optional<std::int64_t>(), std::optional<std::int64_t>(1)}) {
      WorldOptions options;
      options.comm_timeout = std::chrono::seconds(60);
      run_thread_ranks(3, options, [&](World& world) {
        const LogRecord metrics = metrics_of(world, tokenizer, strategy, memory_bytes);
        EXPECT_DOUBLE_EQ(metrics.number("exact_match").value(), 0.8) << strategy;
        EXPECT_GE(metrics.number("f1").value(), 0.8) << strategy;
        EXPECT_LT(metrics.number("f1").value(), 1) << strategy;
      });
    }
  }
}

std::vector<TokenIds> prompts_of_lengths(const std::vector<std::size_t>& lengths) {
  std::vector<TokenIds> prompts;
  for (const std::size_t length : lengths) prompts.emplace_back(length, 1);
  return prompts;
}

TEST(Answers, AreMadeInBatchesOfLikeLengthLongOnesFirst) {
  const auto model = small_bloom(0, 3);
  const auto prompts = prompts_of_lengths({3, 9, 5, 8, 1, 7});
  using Batches = std::vector<std::vector<std::size_t>>;
  AnswerOptions options;
  EXPECT_EQ(answer_batches(prompts, *model, options, 0, 1), (Batches{{1, 3, 5, 2, 0, 4}}));
  EXPECT_EQ(answer_batches(prompts, *model, options, 0, 2), (Batches{{1, 5, 0}}));
  EXPECT_EQ(answer_batches(prompts, *model, options, 1, 2), (Batches{{3, 2, 4}}));
  EXPECT_EQ(answer_batches(prompts, *model, options, 6, 7), Batches{});
  options.batch_bytes = 1;
  EXPECT_EQ(answer_batches(prompts, *model, options, 1, 2), (Batches{{3}, {2}, {4}}));
}

// Twice the memory makes batches of about twice as many prompts, but never more than are useful.
TEST(Answers, BatchesGoByMemory) {
  const auto model = small_bloom(0, 3);
  const auto prompts = prompts_of_lengths(std::vector<std::size_t>(1000, 20));
  AnswerOptions options;
  const auto largest = [&](std::int64_t bytes) {
    options.batch_bytes = bytes;
    return answer_batches(prompts, *model, options, 0, 1).front().size();
  };
  const std::size_t few = largest(4'000'000);
  EXPECT_GT(few, 4U);
  EXPECT_LT(few, kMostPrompts / 2);
  EXPECT_NEAR(static_cast<double>(largest(8'000'000)), 2 * static_cast<double>(few), 1.0);
  EXPECT_EQ(largest(std::int64_t{1} << 40), kMostPrompts);
  std::set<std::size_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    for (const auto& batch : answer_batches(prompts, *model, options, rank, 3)) seen.insert(batch.begin(), batch.end());
  }
  EXPECT_EQ(seen.size(), prompts.size());
}

}  // namespace
}  // namespace tessera
