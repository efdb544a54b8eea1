// Signals to the launcher reach the ranks, which then have time to end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <thread>

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
  LaunchRun run(shell(two_ranks(), "echo up; exec sleep 90"));
  run.wait_for_output("up", 2);
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(kSoon), 143);
  EXPECT_TRUE(contains(run.err(), "ended by SIGTERM")) << run.err();
  EXPECT_TRUE(run.is_gone(0ms));
}

TEST_P(LaunchSignals, LetsRanksEndWell) {
  LaunchRun run(shell(two_ranks(), "trap 'sleep 1.5; echo saved; exit 0' INT; echo up; while :; do sleep 0.05; done"));
  run.wait_for_output("up", 2);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(kSoon), 0) << run.err();
  run.wait_for_output("saved", 2);
}

TEST_P(LaunchSignals, PassesUserSignalsOnAndGoesOn) {
  LaunchRun run(
      shell(two_ranks(), "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo up; while :; do sleep 0.05; done"));
  run.wait_for_output("up", 2);
  run.signal(SIGUSR1);
  run.wait_for_output("one", 2);
  run.signal(SIGUSR2);
  EXPECT_EQ(run.wait(kSoon), 0) << run.err();
  run.wait_for_output("two", 2);
}

TEST_P(LaunchSignals, NamesARankThatAUserSignalKilled) {
  LaunchRun run(shell(two_ranks(), "echo up; exec sleep 90"));
  run.wait_for_output("up", 2);
  run.signal(SIGUSR1);
  EXPECT_EQ(run.wait(kSoon), 128 + SIGUSR1);
  EXPECT_TRUE(contains(run.err(), "killed by SIGUSR1")) << run.err();
}

// A closed terminal asks for an end as SIGTERM does.
TEST_P(LaunchSignals, EndsAndDoesNotRestartWhenTheTerminalIsGone) {
  LaunchRun run(shell(two_ranks({"--max_restarts", "3"}), "echo up; exec sleep 90"));
  run.wait_for_output("up", 2);
  run.signal(SIGHUP);
  EXPECT_EQ(run.wait(kSoon), 129);
  EXPECT_TRUE(contains(run.err(), "ended by SIGHUP")) << run.err();
  EXPECT_FALSE(contains(run.err(), "restart")) << run.err();
  EXPECT_TRUE(run.is_gone(0ms));
}

// As scancel does: ranks may be gone before the launcher notices anything.
TEST_P(LaunchSignals, DoesNotRestartWhenEveryProcessGetsTheSignal) {
  LaunchRun run(shell(two_ranks({"--max_restarts", "3"}), "echo up; exec sleep 90"));
  run.wait_for_output("up", 2);
  auto processes = run.processes();
  std::reverse(processes.begin(), processes.end());  // the launcher last
  for (const pid_t process : processes) kill(process, SIGTERM);
  EXPECT_EQ(run.wait(kSoon), 143) << run.err();
  EXPECT_FALSE(contains(run.err(), "restart")) << run.err();
  EXPECT_TRUE(run.is_gone(0ms));
}

// As nohup does, and `&` in a script for SIGINT.
TEST_P(LaunchSignals, StaysDeafToASignalThatWasIgnoredBefore) {
  LaunchRun run(shell(two_ranks(), "echo up; while [ ! -e $TEST_FOLDER/enough ]; do sleep 0.05; done; echo well"), {},
                {"sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh"});
  run.wait_for_output("up", 2);
  run.signal(SIGHUP);
  run.signal(SIGINT);
  std::this_thread::sleep_for(300ms);
  std::ofstream(run.folder() / "enough") << "yes";
  EXPECT_EQ(run.wait(kSoon), 0) << run.err();
  run.wait_for_output("well", 2);
  EXPECT_FALSE(contains(run.err(), "SIG")) << run.err();
}

TEST_P(LaunchSignals, EndsAtOnceAtTheSecondInterrupt) {
  LaunchRun run(shell(two_ranks(), "trap '' INT TERM; echo up; sleep 90"));
  run.wait_for_output("up", 2);
  run.signal(SIGINT);
  for (int round = 0; round < 500 && !contains(run.err(), "SIGINT"); ++round) usleep(10'000);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(kSoon), 130);
  EXPECT_TRUE(run.is_gone(0ms));
}

TEST_P(LaunchSignals, KillsRanksThatTakeTooLong) {
  LaunchRun run(shell(two_ranks({"--stop_timeout", "500ms"}), "trap '' INT TERM; echo up; sleep 90"));
  run.wait_for_output("up", 2);
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(kSoon), 143);
  EXPECT_TRUE(contains(run.err(), "500ms after SIGTERM: killing them")) << run.err();
  EXPECT_TRUE(run.is_gone(0ms));
}

TEST_P(LaunchSignals, DoesNotRestartAfterASignal) {
  LaunchRun run(shell(two_ranks({"--max_restarts", "3"}), "echo up; exec sleep 90"));
  run.wait_for_output("up", 2);
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(kSoon), 143);
  EXPECT_FALSE(contains(run.err(), "restart")) << run.err();
}

}  // namespace
}  // namespace tessera::testing
