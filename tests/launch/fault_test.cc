// Real MPI ranks of which one goes wrong: all end, soon, with a message that names it.
#include <gtest/gtest.h>

#include "run.h"

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;

struct Outcome {
  int status;
  std::string text;
  double seconds;
  bool is_gone;
};

Outcome run_with_fault(const std::string& fault, int num_ranks = 3) {
  const auto start = now_ms();
  LaunchRun run({"--starter", "mpirun", "--nproc_per_node", std::to_string(num_ranks), FAULT_RANK, fault});
  Outcome outcome;
  outcome.status = run.wait(40s);
  outcome.seconds = static_cast<double>(now_ms() - start) / 1000;
  outcome.text = run.out() + run.err();
  outcome.is_gone = run.is_gone(100ms);
  return outcome;
}

// Start of three ranks, and for those that hang the time limit of 2 s and up to 2 s for the others' answers.
constexpr double kStartSeconds = 6, kHangSeconds = kStartSeconds + 4;

TEST(Fault, AKilledRankTakesTheOthersDown) {
  const Outcome outcome = run_with_fault("kill");
  EXPECT_EQ(outcome.status, 137);
  EXPECT_TRUE(contains(outcome.text, "rank 1 on host ")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "killed by SIGKILL")) << outcome.text;
  EXPECT_LT(outcome.seconds, kStartSeconds + 2);
  EXPECT_TRUE(outcome.is_gone);
}

TEST(Fault, ACrashIsNamedByItsSignal) {
  const Outcome outcome = run_with_fault("segfault");
  EXPECT_EQ(outcome.status, 139);
  EXPECT_TRUE(contains(outcome.text, "SIGSEGV")) << outcome.text;
  EXPECT_TRUE(outcome.is_gone);
}

TEST(Fault, AnExceptionIsToldByItsOwnWords) {
  const Outcome outcome = run_with_fault("throw");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(contains(outcome.text, "tessera launch: rank 1 on host ")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "the disk is full")) << outcome.text;
  EXPECT_LT(outcome.seconds, kStartSeconds + 2);
  EXPECT_TRUE(outcome.is_gone);
}

TEST(Fault, ARankThatNeverEntersACollectiveIsNamedWithWhereItStands) {
  const Outcome outcome = run_with_fault("hang");
  EXPECT_EQ(outcome.status, 43);
  EXPECT_TRUE(contains(outcome.text, "a collective took longer than 2s (--comm_timeout)")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "all_reduce of 'block.3' (4194304 bytes, Float sum) on group world"))
      << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "never entered it:\n  rank 1: last finished")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "of 'block.2'")) << outcome.text;
  EXPECT_LT(outcome.seconds, kHangSeconds);
  EXPECT_TRUE(outcome.is_gone);
}

TEST(Fault, AStoppedRankThatCannotAnswerIsNamedToo) {
  const Outcome outcome = run_with_fault("stop");
  EXPECT_EQ(outcome.status, 43);
  EXPECT_TRUE(contains(outcome.text, "rank 1: did not answer")) << outcome.text;
  EXPECT_LT(outcome.seconds, kHangSeconds);
  EXPECT_TRUE(outcome.is_gone);
}

TEST(Fault, ARankThatSendsAnotherSizeIsNamedWithIt) {
  for (const int num_ranks : {2, 4}) {
    const Outcome outcome = run_with_fault("size", num_ranks);
    EXPECT_EQ(outcome.status, 43);
    EXPECT_TRUE(contains(outcome.text, "rank 1: #4 all_reduce of 'block.3' (4096 bytes, Float sum)") ||
                contains(outcome.text, "#4 all_reduce of 'block.3' (4096 bytes, Float sum) on group world"))
        << outcome.text;
    EXPECT_TRUE(contains(outcome.text, "entered another one instead:")) << outcome.text;
    EXPECT_LT(outcome.seconds, kHangSeconds);
    EXPECT_TRUE(outcome.is_gone);
  }
}

TEST(Fault, ARankThatCallsAnotherOperationIsNamedWithIt) {
  const Outcome outcome = run_with_fault("operation");
  EXPECT_EQ(outcome.status, 43);
  EXPECT_TRUE(contains(outcome.text, "broadcast of 'block.3'")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "entered another one instead:")) << outcome.text;
  EXPECT_LT(outcome.seconds, kHangSeconds);
  EXPECT_TRUE(outcome.is_gone);
}

}  // namespace
}  // namespace tessera::testing
