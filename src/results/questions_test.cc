#include "results/questions.h"

#include <gtest/gtest.h>

#include "record/find_runs.h"
#include "support/contains.h"

namespace tessera {
namespace {

std::vector<RunRecord> runs_of_experiment(const std::string& folder) {
  return find_runs({std::string(TESSERA_TEST_DATA_FOLDER) + "/runs/experiments/" + folder}, RunDetail::kWhole).runs;
}

Answer answer_to(const std::vector<Answer>& answers, const std::string& question) {
  for (const Answer& answer : answers) {
    if (answer.question.find(question) != std::string::npos) return answer;
  }
  return {"", "", "", "not asked"};
}

Answer asked(const std::string& folder, const std::string& question) {
  return answer_to(answer_questions(runs_of_experiment(folder)), question);
}

TEST(Questions, LowestPeakNamesTies) {
  const Answer answer = asked("deepspeed/single_gpu", "lowest peak");
  EXPECT_EQ(answer.question,
            "Which strategy has the lowest peak GPU memory? (bloom-qa, 559,214,592 parameters; 1 rank on 1 node)");
  EXPECT_EQ(
      answer.answer,
      "zero0, zero1, zero2, zero3 are equal within 1 %: 23900 MiB. At 1 rank the stages are equal by construction");
  // 1 + 1 + 4 GiB of parameters, gradients and optimizer
  EXPECT_TRUE(contains(answer.arithmetic, "state between steps, by the plan: zero0 6 GiB"));
  std::vector<RunRecord> runs = runs_of_experiment("deepspeed/single_gpu");
  for (RunRecord& run : runs) {
    if (run.text("strategy") == "zero3" && !run.ranks.empty()) run.ranks[0].numbers.set("allocated_peak_MB", 20000.0);
  }
  EXPECT_TRUE(contains(answer_to(answer_questions(runs), "lowest peak").answer, "zero3, with 20000 MiB"));
}

TEST(Questions, OffloadCosts) {
  const Answer answer = asked("deepspeed/single_gpu", "offload cost? (zero2;");
  EXPECT_EQ(answer.answer, "zero2 with offload: -50.0 % samples/s");  // 2.375 / 4.75
  EXPECT_EQ(answer.arithmetic,
            "samples/s 2.375 against 4.750: -50.0 %; runtime 604.00 s against 302.00 s: +100.0 %; peak GPU memory "
            "(allocated) 11500 MiB against 23900 MiB: -51.9 %");  // 11500 / 23900 = 0.4812
}

TEST(Questions, PinningHelps) {
  const Answer answer = asked("deepspeed/single_gpu", "pinning");
  EXPECT_EQ(answer.answer, "Yes; pinned against plain: +33.3 % samples/s");  // 3.1667 / 2.375 = 1.3333
}

TEST(Questions, WeakScaling) {
  const std::string folder = "fsdp/custom_model/weak_scaling";
  const Answer memory = asked(folder, "peak memory per GPU constant");
  EXPECT_EQ(memory.answer, "No: it varies by 10.8 % of the smallest setup's");  // 2048 / 18944 = 0.1081
  // 8 GiB / 3 - 8 GiB = -5461 MiB
  EXPECT_EQ(memory.arithmetic,
            "(18944 - 16896) / 18944 MiB (allocated); 2 GPUs 18944 MiB, 4 GPUs 17920 MiB, 8 GPUs 16896 MiB; by the "
            "plan, from first to last: activations -5461 MiB");
  const Answer speed = asked(folder, "samples/s constant");
  EXPECT_EQ(
      speed.arithmetic,
      "2 GPUs: 12.000 in all, 6.000 per GPU; 4 GPUs: 9.600 in all, 2.400 per GPU; 8 GPUs: 7.500 in all, 0.938 per "
      "GPU");
}

TEST(Questions, AverageMemoryWithMoreNodes) {
  const Answer answer = asked("deepspeed/multi_node", "with more nodes");
  EXPECT_EQ(answer.answer, "Down: -6.5 % from 2 to 4 nodes");       // 11008 / 11776 = 0.9348
  EXPECT_TRUE(contains(answer.arithmetic, "-384.0 MiB per node"));  // -768 MiB over 2 nodes
}

TEST(Questions, OneGpuHasNobodyToShareWith) {
  const Answer answer = asked("fsdp/bloom", "FSDP on 1 GPU");
  EXPECT_EQ(answer.answer, "No. At 1 rank there is nobody to share with: a shard is the whole");
  EXPECT_EQ(answer.arithmetic, "peak (allocated): full_shard 22044 MiB, baseline 22000 MiB: +0.2 %");
}

TEST(Questions, ShareOfBlocks) {
  const Answer answer = asked("fsdp/bloom", "in its blocks");
  EXPECT_EQ(answer.answer, "54 % (a guide says 80 %)");
  EXPECT_TRUE(contains(answer.arithmetic, "302,309,376 of 559,214,592"));
}

TEST(Questions, WithinAgainstAcrossNodes) {
  const Answer answer = asked("deepspeed", "4 GPUs within a node");
  EXPECT_EQ(answer.answer, "across 2 nodes against one node: -41.7 % samples/s");  // 7 / 12
  // Runtimes are of 1,000 and 2,000 rows, and are not compared.
  EXPECT_FALSE(contains(answer.arithmetic, "runtime"));
}

TEST(Questions, LossAcrossGpuCounts) {
  const Answer answer = asked("fsdp/custom_model/multi_gpu", "loss alike");
  EXPECT_FALSE(answer.why_not.empty());  // one run
  const Answer both = asked("fsdp/bloom/multi_gpu", "loss alike");
  EXPECT_EQ(
      both.answer,
      "Yes: it differs by 2.4 %; from 2 GPUs to 4 the global batch goes from 8 to 16, updates go from 310 to 125");
}

TEST(Questions, TrainerAgainstCallback) {
  const Answer answer = asked("fsdp/custom_model", "callback");
  // 21 / 20; the other is 13 / 12.5
  EXPECT_TRUE(contains(answer.answer, "by at most +5.0 %; the callback's are higher in 2 of 2 runs: "))
      << answer.answer;
}

TEST(Questions, SayWhatTheyNeed) {
  const std::vector<Answer> answers = answer_questions({});
  EXPECT_EQ(answers.size(), 11u);
  for (const Answer& answer : answers) {
    EXPECT_TRUE(answer.answer.empty());
    EXPECT_TRUE(contains(answer.why_not, "it needs ")) << answer.question;
  }
  EXPECT_TRUE(contains(answers_text(answers, false), "cannot be answered: it needs a run of a BLOOM model\n"));
}

TEST(Questions, OfATable) {
  const std::vector<RunRecord> family = runs_of_experiment("fsdp/bloom");
  const std::vector<Answer> answers =
      answer_table_questions("fsdp/bloom/multi_node", runs_of_experiment("fsdp/bloom/multi_node"), family);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[1].answer, "across 4 nodes against one node: +0.0 % samples/s");  // needs the multi_gpu table's run
  EXPECT_TRUE(answer_table_questions("deepspeed/baseline", {}, {}).empty());
}

}  // namespace
}  // namespace tessera
