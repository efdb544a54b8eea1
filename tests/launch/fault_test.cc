// Real MPI ranks, one of which fails: all end soon, with a message that names it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/host.h"
#include "run.h"

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;

FaultOutcome run_with_fault(const std::string& fault, int num_ranks = 3) {
  return run_to_fault(num_ranks, {FAULT_RANK, fault});
}

TEST(Fault, AKilledRankTakesTheOthersDown) {
  const FaultOutcome outcome = run_with_fault("kill");
  expect_named(outcome, 137, {"tessera launch: rank 1 on host ", "killed by SIGKILL"});
  EXPECT_LT(outcome.seconds, kSoon / 1s);
}

TEST(Fault, ACrashIsNamedByItsSignal) {
  const FaultOutcome outcome = run_with_fault("segfault");
  expect_named(outcome, 139, {"rank 1 on host ", "killed by SIGSEGV"});
  EXPECT_LT(outcome.seconds, kSoon / 1s);
}

TEST(Fault, AnExceptionIsToldByItsOwnWords) {
  const FaultOutcome outcome = run_with_fault("throw");
  expect_named(outcome, 1, {"tessera launch: rank 1 on host ", "the disk is full"});
  EXPECT_LT(outcome.seconds, kSoon / 1s);
}

TEST(Fault, ARankThatCallsExitTakesTheOthersDownToo) {
  const FaultOutcome outcome = run_with_fault("exit");
  expect_named(outcome, 3, {"tessera launch: rank 1 on host ", "exit status 3"});
  EXPECT_LT(outcome.seconds, kSoon / 1s);
}

TEST(Fault, ARankThatReturnsAnErrorAloneEndsTheRun) {
  const FaultOutcome outcome = run_with_fault("return");
  expect_named(outcome, 7, {"tessera launch: rank 1 on host ", "the program returned 7 while other ranks continue"});
  EXPECT_LT(outcome.seconds, kSoon / 1s);
}

TEST(Fault, ARankThatNeverEntersACollectiveIsNamedWithWhereItStands) {
  const FaultOutcome outcome = run_with_fault("hang");
  expect_named(
      outcome, 43,
      {"a collective took longer than 2s (--comm_timeout)",
       "all_reduce of 'block.3' (4194304 bytes, Float sum) on group world",
       "never entered it:\n  rank 1: last finished", "of 'block.2'", "entered it:\n  ranks 0, 2: waiting in it"});
  EXPECT_LT(outcome.seconds, kSoon / 1s);
}

TEST(Fault, ARankThatLeftInPeaceIsNamedAsSuch) {
  const FaultOutcome outcome = run_with_fault("leave");
  expect_named(outcome, 43,
               {"tessera launch: rank 1 on ",
                " entered another collective: ", "entered another one instead:\n  rank 1: #", "leave_world"});
  EXPECT_LT(outcome.seconds, kSoon / 1s);
}

TEST(Fault, AStoppedRankThatCannotAnswerIsNamedToo) {
  const FaultOutcome outcome = run_with_fault("stop");
  expect_named(outcome, 43, {"rank 1: did not answer"});
  EXPECT_LT(outcome.seconds, kSoon / 1s);
}

TEST(Fault, ARankThatSendsAnotherSizeIsNamedWithIt) {
  for (const int num_ranks : {2, 4}) {
    const FaultOutcome outcome = run_with_fault("size", num_ranks);
    expect_named(outcome, 43,
                 {"(4096 bytes, Float sum)", "(4194304 bytes, Float sum)", "entered another one instead:"});
    // Of two, whoever raises the alarm compares the other with itself, and it may be the culprit.
    if (num_ranks > 2) expect_named(outcome, 43, {"rank 1 on ", "entered another one instead:\n  rank 1: #"});
    EXPECT_LT(outcome.seconds, kSoon / 1s);
  }
}

TEST(Fault, ARankThatCallsAnotherOperationIsNamedWithIt) {
  const FaultOutcome outcome = run_with_fault("operation");
  expect_named(outcome, 43,
               {"all_reduce of 'block.3'", "entered another one instead:\n  rank 1: #", "broadcast of 'block.3'"});
  EXPECT_LT(outcome.seconds, kSoon / 1s);
}

TEST(Fault, ARankThatNeverComesIsNamed) {
  const std::string missing = fmt::format("tessera launch: rank 1 on {} never connected", host_name());
  expect_named(run_with_fault("never_comes"), 42, {missing, "connected: 0 on ", "2 on "});
  expect_named(run_with_fault("ends_early"), 42, {missing});
}

TEST(Fault, ASettingThatDiffersIsNamedWithItsRank) {
  expect_named(run_with_fault("settings"), 42, {"rank 1 on ", "has learning_rate 0.1, rank 0 on ", "has 0.01"});
}

TEST(NoFault, OperationsThatNobodyWaitedForAreFinished) {
  expect_named(run_with_fault("drop_works"), 0, {});
}

}  // namespace
}  // namespace tessera::testing
