// Real MPI ranks that train under the engine, one of which fails: all end soon, and the message names the rank, what it
// did and the unit.
#include <gtest/gtest.h>

#include "launch/run.h"

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;

// Nodes of two ranks; strategies other than hybrid ignore that.
FaultOutcome run_with_engine_fault(const std::string& fault, const std::string& strategy, int num_ranks = 4) {
  return run_to_fault(num_ranks, {ENGINE_FAULT_RANK, fault, strategy, "2"});
}

// Shorter than a collective's time limit (5 s): none has to run out.
constexpr double kSeconds = 4;

void expect_ended_by_rank_1(const FaultOutcome& outcome, const std::string& where) {
  expect_named(outcome, 1, {"tessera launch: rank 1 on host ", "rank 1, " + where + ": "});
  EXPECT_GE(outcome.seconds, 0);
  EXPECT_LT(outcome.seconds, kSeconds);
}

class EngineFault : public ::testing::TestWithParam<std::string> {};

TEST_P(EngineFault, AnExceptionInForwardNamesRankAndUnit) {
  const FaultOutcome outcome = run_with_engine_fault("forward", GetParam());
  expect_ended_by_rank_1(outcome, "forward of unit block_1");
  EXPECT_TRUE(contains(outcome.text, "the roof is leaking"));
}

TEST_P(EngineFault, AnExceptionInBackwardNamesRankAndUnit) {
  const FaultOutcome outcome = run_with_engine_fault("backward", GetParam());
  expect_ended_by_rank_1(outcome, "backward of unit block_1");
  EXPECT_TRUE(contains(outcome.text, "the roof is leaking"));
}

TEST_P(EngineFault, AnExceptionInAHookOfAGradientNamesRankAndUnit) {
  expect_ended_by_rank_1(run_with_engine_fault("hook", GetParam()), "backward of unit block_1");
}

TEST_P(EngineFault, AnExceptionInTheOptimizerNamesRankAndUnit) {
  expect_ended_by_rank_1(run_with_engine_fault("optimizer", GetParam()), "update of unit block_1");
}

// The worker's thread throws; whoever needs the unit next gets the error.
TEST_P(EngineFault, AnExceptionInAnUpdateInTheBackgroundNamesRankAndUnit) {
  expect_ended_by_rank_1(run_with_engine_fault("background", GetParam()), "update of unit block_1");
}

// Nobody fails: every rank skips the same step, says whose gradient it was, and continues.
TEST_P(EngineFault, ANanOnOneRankIsSkippedByAllAndNamed) {
  const FaultOutcome outcome = run_with_engine_fault("nan", GetParam());
  expect_named(outcome, 0, {});
  for (int rank = 0; rank < 4; ++rank) {
    const std::string who = "rank " + std::to_string(rank);
    // block_0 and the root, into which block_1's gradient flows, are the two others.
    EXPECT_TRUE(contains(outcome.text,
                         who + " skips step 1: the gradient is not finite: rank 1 in unit block_1 and 2 others\n"))
        << outcome.text;
    EXPECT_TRUE(contains(outcome.text, who + " made 3 updates")) << outcome.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, EngineFault, ::testing::Values("ddp", "zero2", "full_shard", "hybrid_shard"),
                         [](const auto& tested) { return tested.param; });

TEST(OneRankOfAnEngine, OutOfMemoryInAGatherNamesRankAndUnit) {
  const FaultOutcome outcome = run_with_engine_fault("memory", "full_shard", 2);
  expect_ended_by_rank_1(outcome, "gather of unit block_0");
  EXPECT_TRUE(contains(outcome.text, "you tried to allocate 67108864 bytes")) << outcome.text;
}

TEST(OneRankOfAnEngine, AnotherModelIsNamedWithTheFirstDifference) {
  expect_named(run_with_engine_fault("model", "full_shard"), 42,
               {"tessera launch: rank 1 on host ", "rank 1 does not hold rank 0's model",
                "parameter 8 is block_2.in of shape [130, 33], Float on cpu, trained, in unit 2 there, and embedding"});
}

TEST(OneRankOfAnEngine, AnotherStrategyIsNamed) {
  expect_named(run_with_engine_fault("strategy", "full_shard"), 42,
               {"tessera launch: rank 1 on host ", "option strategy is full_shard there, and zero2 here"});
}

}  // namespace
}  // namespace tessera::testing
