#include "listeners/end_summary.h"

#include <gtest/gtest.h>

#include "listeners/breakdown_printer.h"

namespace tessera {
namespace {

class EndSummaryText : public testing::Test {
 protected:
  std::string printed_;
  Console console_{[this](std::string_view text) { printed_ += text; }, [](std::string_view) {}, 0};

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

}  // namespace
}  // namespace tessera
