// Signals to the launcher reach the ranks, which then have time to end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "run.h"

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;

class LaunchSignals : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "mpirun" && !has_mpirun()) GTEST_SKIP() << "no mpirun here";
  }
  Words two_ranks(Words more = {}) const {
    more.insert(more.end(), {"--starter", GetParam(), "--nproc_per_node", "2"});
    return more;
  }
};

INSTANTIATE_TEST_SUITE_P(Starters, LaunchSignals, ::testing::Values("fork", "mpirun"),
                         [](const auto& starter) { return starter.param; });

TEST_P(LaunchSignals, EndsWithTheSignalsStatus) {
  LaunchRun run(shell(two_ranks(), "echo up; exec sleep 60"));
  run.wait_for_output("up", 2);
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(5s), 143);
  EXPECT_TRUE(contains(run.err(), "ended by SIGTERM")) << run.err();
  EXPECT_TRUE(run.is_gone(0ms));
}

TEST_P(LaunchSignals, LetsRanksEndWell) {
  LaunchRun run(shell(two_ranks(), "trap 'sleep 1.5; echo saved; exit 0' INT; echo up; while :; do sleep 0.05; done"));
  run.wait_for_output("up", 2);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(10s), 0) << run.err();
  run.wait_for_output("saved", 2);
}

TEST_P(LaunchSignals, PassesUserSignalsOnAndGoesOn) {
  LaunchRun run(
      shell(two_ranks(), "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo up; while :; do sleep 0.05; done"));
  run.wait_for_output("up", 2);
  run.signal(SIGUSR1);
  run.wait_for_output("one", 2);
  run.signal(SIGUSR2);
  EXPECT_EQ(run.wait(5s), 0) << run.err();
  run.wait_for_output("two", 2);
}

TEST_P(LaunchSignals, NamesARankThatAUserSignalKilled) {
  LaunchRun run(shell(two_ranks(), "echo up; exec sleep 60"));
  run.wait_for_output("up", 2);
  run.signal(SIGHUP);
  EXPECT_EQ(run.wait(5s), 129);
  EXPECT_TRUE(contains(run.err(), "killed by SIGHUP")) << run.err();
}

TEST_P(LaunchSignals, EndsAtOnceAtTheSecondInterrupt) {
  LaunchRun run(shell(two_ranks(), "trap '' INT TERM; echo up; sleep 60"));
  run.wait_for_output("up", 2);
  run.signal(SIGINT);
  while (!contains(run.err(), "SIGINT")) usleep(10'000);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(2s), 130);
  EXPECT_TRUE(run.is_gone(0ms));
}

TEST_P(LaunchSignals, KillsRanksThatTakeTooLong) {
  LaunchRun run(shell(two_ranks({"--stop_timeout", "500ms"}), "trap '' INT TERM; echo up; sleep 60"));
  run.wait_for_output("up", 2);
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(3s), 143);
  EXPECT_TRUE(contains(run.err(), "500ms after SIGTERM: killed")) << run.err();
  EXPECT_TRUE(run.is_gone(0ms));
}

TEST_P(LaunchSignals, DoesNotRestartAfterASignal) {
  LaunchRun run(shell(two_ranks({"--max_restarts", "3"}), "echo up; exec sleep 60"));
  run.wait_for_output("up", 2);
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(5s), 143);
  EXPECT_FALSE(contains(run.err(), "restart")) << run.err();
}

}  // namespace
}  // namespace tessera::testing
