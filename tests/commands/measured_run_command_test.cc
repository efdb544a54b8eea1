// What a run measures of itself: facts, parts of a step, collectives, traces, its page.
#include <cmath>

#include "commands/train_command.h"
#include "core/file.h"
#include "support/gunzip.h"

namespace tessera {
namespace {

using RunCommandMeasures = TrainCommandTest;

TEST_F(RunCommandMeasures, FactsPartsCollectivesAndAPage) {
  const Ended ended = bloom("out", "--strategy full_shard --num_train_epochs 2", 2);
  ASSERT_EQ(ended.status, 0) << ended.output;
  const Json run = record("out");
  const Json& facts = run.at("facts");
  EXPECT_EQ(facts.at("job"), "bloom-qa");
  EXPECT_EQ(facts.at("strategy"), "full_shard");
  EXPECT_EQ(facts.at("ranks"), 2);
  EXPECT_EQ(facts.at("nodes"), 1);
  EXPECT_EQ(facts.at("precision"), "fp32");
  EXPECT_EQ(facts.at("train_rows"), 16);
  EXPECT_EQ(facts.at("global_batch"), 8);  // 2 rows x 2 micro-steps x 2 ranks
  EXPECT_EQ(facts.at("updates_per_epoch"), 2);
  EXPECT_EQ(facts.at("label_mode"), "answer");
  EXPECT_TRUE(facts.at("merge_accumulation").is_boolean()) << "decided, not auto";
  EXPECT_GT(run.at("planned_memory").at("total"), 0);

  ASSERT_EQ(run.at("ranks").size(), 2u);
  for (const Json& rank : run.at("ranks")) {
    EXPECT_EQ(rank.at("numbers").at("steps"), 3);  // of 4: the first is left out
    double sum = 0;
    for (const Json& part : rank.at("parts")) sum += part.at("mean_ms").get<double>();
    EXPECT_NEAR(sum, rank.at("numbers").at("step_mean_ms").get<double>(), 0.02 * sum);
    EXPECT_EQ(rank.at("parts").size(), 7u);
  }

  // Per update: a block is reduced once; it is gathered for forward and again for backward, the last one once.
  std::map<std::string, std::int64_t> calls;
  for (const Json& use : run.at("collectives")) {
    calls[use.at("operation").get<std::string>() + " " + use.at("unit").get<std::string>()] = use.at("calls");
    EXPECT_GE(use.at("seconds"), 0);
  }
  const std::int64_t passes = facts.at("merge_accumulation") == true ? 1 : 2;
  EXPECT_EQ(calls["reduce_scatter transformer.h.0"], 4 * passes);
  EXPECT_EQ(calls["all_gather transformer.h.0"], 4 * passes * 2);

  EXPECT_EQ(count_of(ended.output, "Run finished after 4 of 4 steps: full_shard on 2 ranks"), 1) << ended.output;
  EXPECT_EQ(count_of(ended.output, "  page      " + out("out") + "/report.html"), 1) << ended.output;
  EXPECT_TRUE(contains(read_file(folder_ / "out" / "report.html"), "full_shard"));
}

TEST_F(RunCommandMeasures, TracesHoldStepsUnitsAndCollectivesAndChangeNoLoss) {
  const Ended plain = bloom("plain", "--strategy zero3 --num_train_epochs 2", 2);
  ASSERT_EQ(plain.status, 0) << plain.output;
  const Ended traced = bloom("traced", "--strategy zero3 --num_train_epochs 2 --profile_steps 2-3", 2);
  ASSERT_EQ(traced.status, 0) << traced.output;
  EXPECT_EQ(logged(traced.output, "loss"), logged(plain.output, "loss"));
  EXPECT_EQ(count_of(traced.output, "gpuGetDeviceCount"), 0) << traced.output;
  EXPECT_EQ(record("traced").at("traces"), Json::array({"trace_rank-0.json.gz", "trace_rank-1.json.gz"}));
  for (const int rank : {0, 1}) {
    const Json trace = Json::parse(gunzip(folder_ / "traced" / fmt::format("trace_rank-{}.json.gz", rank)));
    EXPECT_EQ(trace.at("distributedInfo").at("rank"), rank);
    std::map<std::string, int> count;
    double step_begin = INFINITY, step_end = 0, gather_begin = INFINITY, gather_end = 0;
    for (const Json& event : trace.at("traceEvents")) {
      const std::string name = event.value("name", "");
      const bool is_step = name.starts_with("ProfilerStep#"),
                 is_gather = name.starts_with("all_gather of 'transformer.h");
      ++count[is_step ? name : is_gather ? "all_gather" : name];
      if (!event.contains("dur")) continue;
      const double begin = event.at("ts"), end = begin + event.at("dur").get<double>();
      if (is_step) step_begin = std::min(step_begin, begin), step_end = std::max(step_end, end);
      if (is_gather) gather_begin = std::min(gather_begin, begin), gather_end = std::max(gather_end, end);
    }
    for (const char* name :
         {"ProfilerStep#2", "ProfilerStep#3", "transformer.h.0", "forward", "update", "all_gather"}) {
      EXPECT_GE(count[name], 1) << name << ", rank " << rank;
    }
    EXPECT_EQ(count["ProfilerStep#1"] + count["ProfilerStep#4"], 0);
    EXPECT_GE(gather_begin, step_begin) << "both clocks agree";
    EXPECT_LE(gather_end, step_end);
  }
}

TEST_F(RunCommandMeasures, StepsThatCannotBeTracedAreRefused) {
  for (const char* steps : {"3-2", "0", "a", "1-2-3", "1-51", "5"}) {
    const Ended ended = bloom("out", std::string("--num_train_epochs 1 --profile_steps ") + steps);
    EXPECT_EQ(ended.status, 2) << steps << ended.output;
    EXPECT_TRUE(contains(ended.output, "profile_steps")) << ended.output;
  }
}

TEST_F(RunCommandMeasures, TheBreakdownIsPrintedWithEachLog) {
  const Ended ended = bloom("out", "--num_train_epochs 1 --wall_clock_breakdown");
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(count_of(ended.output, "time per step (ms) | data wait: "), 4) << ended.output;
  EXPECT_EQ(count_of(ended.output, "| backward: 0.00 |"), 0) << "each line shows the steps up to its own";
}

}  // namespace
}  // namespace tessera
