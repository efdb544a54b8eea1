// Several launchers that treat this host as several nodes: they meet, agree, fail and restart together.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "run.h"

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;

class Nodes : public ::testing::Test {
 protected:
  Words node(int number, int count = 2, Words more = {}) const {
    more.insert(more.end(),
                {"--nnodes", std::to_string(count), "--node_rank", std::to_string(number), "--nproc_per_node", "2",
                 "--rdzv_id", "job", "--rdzv_backend=c10d", "--rdzv_endpoint", "127.0.0.1:" + std::to_string(port_)});
    return more;
  }
  int port_ = free_port();
};

TEST_F(Nodes, NumberRanksAcrossNodesAndAgreeOnTheirMeetingPlace) {
  const std::string line = "echo r$RANK/$WORLD_SIZE l$LOCAL_RANK g$GROUP_RANK at $MASTER_ADDR:$MASTER_PORT';'";
  LaunchRun first(shell(node(0), line)), second(shell(node(1), line));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_TRUE(contains(first.out(), "r1/4 l1 g0 at 127.0.0.1:")) << first.out();
  EXPECT_TRUE(contains(second.out(), "r2/4 l0 g1 at 127.0.0.1:")) << second.out();
  const auto place = [](const std::string& text) {
    const auto start = text.find(" at ");
    return text.substr(start, text.find(";", start) - start);
  };
  EXPECT_EQ(place(first.out()), place(second.out()));
}

TEST_F(Nodes, TakeTheirRanksDownWhenOneOfAnotherNodeFails) {
  const std::string line = "[ $RANK = 3 ] || exec sleep 90; sleep 1; date +%s%3N > $TEST_FOLDER/died; kill -SEGV $$";
  LaunchRun first(shell(node(0), line)), second(shell(node(1), line));
  EXPECT_EQ(first.wait(), 139) << first.err();
  EXPECT_EQ(second.wait(), 139) << second.err();
  EXPECT_LT(now_ms() - read_ms(second.folder() / "died"), kSoon / 1ms);
  for (const LaunchRun* run : {&first, &second}) {
    EXPECT_TRUE(contains(run->err(), "rank 3 on host ")) << run->err();
    EXPECT_TRUE(contains(run->err(), "failed: killed by SIGSEGV\n")) << run->err();
    EXPECT_TRUE(run->is_gone(0ms));
  }
}

TEST_F(Nodes, RestartTogether) {
  const std::string line =
      "echo attempt $TORCHELASTIC_RESTART_COUNT rank $RANK; "
      "[ $RANK$TORCHELASTIC_RESTART_COUNT = 20 ] && exit 5; sleep 1";
  LaunchRun first(shell(node(0, 2, {"--max_restarts", "2"}), line)),
      second(shell(node(1, 2, {"--max_restarts", "2"}), line));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_TRUE(contains(first.err(), "restart 1 of 2 after rank 2 failed: exit status 5")) << first.err();
  EXPECT_TRUE(contains(first.out(), "attempt 1 rank 0\n"));
  EXPECT_TRUE(contains(second.out(), "attempt 1 rank 3\n"));
}

TEST_F(Nodes, EndWhenTheHeadNodeIsGone) {
  LaunchRun first(shell(node(0), "echo up; exec sleep 90")), second(shell(node(1), "echo up; exec sleep 90"));
  second.wait_for_output("up", 2);
  first.signal(SIGKILL);
  EXPECT_EQ(second.wait(kSoon), 42);
  EXPECT_TRUE(contains(second.err(), "node 0")) << second.err();
  EXPECT_TRUE(contains(second.err(), "gone")) << second.err();
  EXPECT_TRUE(second.is_gone(0ms));
  EXPECT_TRUE(first.is_gone(kSoon));
}

TEST_F(Nodes, EndWhenAnotherNodeIsGone) {
  LaunchRun first(shell(node(0, 2, {"--node_timeout", "1s"}), "echo up; exec sleep 90"));
  LaunchRun second(shell(node(1), "echo up; exec sleep 90"));
  first.wait_for_output("up", 2);
  second.wait_for_output("up", 2);
  second.signal(SIGKILL);
  EXPECT_EQ(first.wait(kSoon), 42);
  EXPECT_TRUE(contains(first.err(), "node 1")) << first.err();
  EXPECT_TRUE(first.is_gone(0ms));
}

TEST_F(Nodes, NameTheOneThatNeverCame) {
  LaunchRun first(shell(node(0, 3, {"--start_timeout", "2s"}), "echo up"));
  LaunchRun second(shell(node(1, 3, {"--start_timeout", "2s"}), "echo up"));
  EXPECT_EQ(first.wait(), 42);
  EXPECT_EQ(second.wait(), 42);
  EXPECT_TRUE(contains(first.err(), "node 2")) << first.err();
  EXPECT_TRUE(contains(second.err(), "node 2")) << second.err();
  EXPECT_EQ(first.out() + second.out(), "");
}

TEST_F(Nodes, NameTheSettingInWhichTheyDiffer) {
  Words other = node(1);
  *std::next(std::find(other.begin(), other.end(), "--nproc_per_node")) = "4";
  LaunchRun first(shell(node(0), "echo up")), second(shell(other, "echo up"));
  EXPECT_EQ(first.wait(), 42);
  EXPECT_EQ(second.wait(), 42);
  EXPECT_TRUE(contains(first.err(), "--nproc_per_node")) << first.err();
}

TEST_F(Nodes, CanBeInterruptedWhileTheyWait) {
  LaunchRun first(shell(node(0), "echo up"));
  std::this_thread::sleep_for(1s);
  first.signal(SIGINT);
  EXPECT_EQ(first.wait(kSoon), 130);
}

}  // namespace
}  // namespace tessera::testing
