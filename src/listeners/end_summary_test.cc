#include "listeners/end_summary.h"

#include <gtest/gtest.h>

#include "listeners/console.h"

namespace tessera {
namespace {

class EndSummaryText : public testing::Test {
 protected:
  std::string printed_;
  Console console_{[this](std::string_view text) { printed_ += text; }, [](std::string_view, std::string_view) {}, 0};

  std::string at_end(const RunFacts& facts, const std::vector<LogRecord>& logs, const LogRecord& summary,
                     const std::vector<RankRecord>& ranks, RunEnd end = RunEnd::kFinished) {
    EndSummary listener(console_, facts);
    for (const LogRecord& log : logs) listener.on_log({}, log);
    listener.on_summary({}, summary);
    listener.set_ranks(ranks);
    listener.on_train_end({93, 93, 3, 0}, end, "");
    return printed_;
  }
};

TEST_F(EndSummaryText, AGpuRunHasTimeLossMemoryAndParts) {
  RunFacts facts;
  facts.facts = {{"strategy", std::string("zero2")}, {"ranks", std::int64_t{2}}};
  facts.planned_memory = {{"total", std::int64_t{3} << 30}};
  RankRecord rank;
  rank.parts = {{"forward", 30, 0}, {"backward", 70, 0}};
  EXPECT_EQ(at_end(facts,
                   {{{"loss", 2.5}},
                    {{"eval_loss", 1.25}},
                    {{"train_runtime", 75.4}, {"train_samples_per_second", 7.518}, {"train_loss", 3.98686}}},
                   {{"max_mem_alloc_MB", 2048.0}, {"exact_match", 0.5}, {"f1", 0.75}}, {rank}),
            "Run finished after 93 of 93 steps: zero2 on 2 ranks\n"
            "  time      1 min 15 s, 7.5 samples/s\n"
            "  loss      3.9869 in training, 1.2500 in the last evaluation, exact match 0.5000, F1 0.7500\n"
            "  memory    2 GiB allocated at the peak on a GPU (planned: 3 GiB)\n"
            "  step      100.0 ms = forward 30.0 %, backward 70.0 %\n");
}

TEST_F(EndSummaryText, ACpuRunSaysWhichMemoryItMeans) {
  EXPECT_EQ(at_end({}, {}, {{"max_cpu_mem_MB", 512.0}}, {}),
            "Run finished after 93 of 93 steps\n  memory    512 MiB resident at the peak in a process\n");
  printed_.clear();
  RankRecord rank;  // the kernel's own peak, also between steps, as `tessera runs` has it
  rank.numbers = {{"resident_peak_MB", 600.0}};
  EXPECT_EQ(at_end({}, {}, {{"max_cpu_mem_MB", 512.0}}, {rank}),
            "Run finished after 93 of 93 steps\n  memory    600 MiB resident at the peak in a process\n");
}

TEST_F(EndSummaryText, AFailedRunHasNone) {
  EXPECT_EQ(at_end({}, {{{"train_loss", 1.0}}}, {}, {}, RunEnd::kFailed), "");
}

TEST(BreakdownLine, HasEveryPartInMs) {
  PartSeconds parts{};
  parts[static_cast<std::size_t>(StepPart::kData)] = 0.0051;
  parts[static_cast<std::size_t>(StepPart::kOther)] = 1.5;
  EXPECT_EQ(breakdown_line(parts),
            "time per step (ms) | data wait: 5.10 | forward: 0.00 | backward: 0.00 | communication: 0.00 | host "
            "transfer: 0.00 | "
            "update: 0.00 | other: 1500.00");
}

RankRecord rank_with(int number, double data_ms, double forward_ms, double communication_ms) {
  RankRecord rank;
  rank.rank = number;
  rank.parts = {{"data wait", data_ms, 0}, {"forward", forward_ms, 0}, {"communication", communication_ms, 0}};
  return rank;
}

TEST(StepText, IsTheMeanOverRanks) {
  EXPECT_EQ(step_text({rank_with(0, 10, 30, 60), rank_with(1, 30, 50, 20)}),
            "100.0 ms = data wait 20.0 %, forward 40.0 %, communication 40.0 %");
  EXPECT_EQ(step_text({rank_with(0, 0, 1500, 0)}), "1.50 s = forward 100.0 %");
  EXPECT_EQ(step_text({}), "");
  EXPECT_EQ(step_text({RankRecord()}), "");
}

// All ranks take 100 ms, since they wait for each other: rank 2 has 60 ms of its own work where the median is 50.
TEST(StepText, NamesTheRankThatTheOthersWaitFor) {
  const std::vector<RankRecord> ranks = {rank_with(0, 10, 40, 50), rank_with(1, 10, 38, 52), rank_with(2, 21, 39, 40),
                                         rank_with(3, 9, 41, 50)};
  EXPECT_EQ(slow_rank_text(ranks), "rank 2 is 20 % slower than the median (data wait)");
}

TEST(StepText, RanksThatAreAlikeAreNotNamed) {
  EXPECT_FALSE(slow_rank_text({rank_with(0, 10, 40, 50), rank_with(1, 11, 41, 48)}).has_value());
  EXPECT_FALSE(slow_rank_text({rank_with(0, 10, 40, 50)}).has_value());
  EXPECT_FALSE(slow_rank_text({RankRecord(), RankRecord()}).has_value());
}

TEST(StepText, RanksMayHaveDifferentParts) {
  RankRecord few = rank_with(1, 10, 40, 50);
  few.parts.pop_back();
  EXPECT_EQ(step_text({rank_with(0, 10, 40, 50), few}),
            "75.0 ms = data wait 13.3 %, forward 53.3 %, communication 33.3 %");
  EXPECT_TRUE(slow_rank_text({rank_with(0, 10, 80, 10), few}).has_value());
}

}  // namespace
}  // namespace tessera
