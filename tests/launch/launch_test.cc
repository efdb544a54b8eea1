// Ranks on one host, with both starters: what they get, how failures are reported, that nothing is left behind.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "run.h"
#include "support/test_folder.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Where logs go: the launcher creates it.
class LogFolder {
 public:
  std::string path() const { return parent_ / "made/here"; }

 private:
  TestFolder parent_;
};

class Launch : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "mpirun" && !has_mpirun()) GTEST_SKIP() << "no mpirun here";
  }
  Words ranks(int count, Words more = {}) const {
    more.insert(more.end(), {"--starter", GetParam(), "--nproc_per_node", std::to_string(count)});
    return more;
  }
};

INSTANTIATE_TEST_SUITE_P(Starters, Launch, ::testing::Values("fork", "mpirun"),
                         [](const auto& starter) { return starter.param; });

TEST_P(Launch, GivesRanksTheirPlaceWhateverItInherits) {
  LaunchRun run(shell(ranks(3),
                      "echo r$RANK/$WORLD_SIZE l$LOCAL_RANK/$LOCAL_WORLD_SIZE g$GROUP_RANK $MASTER_ADDR "
                      "$TESSERA_LAUNCHED $TORCHELASTIC_RESTART_COUNT t$OMP_NUM_THREADS"),
                {{"RANK", "7"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "5"}, {"OMP_NUM_THREADS", "3"}});
  EXPECT_EQ(run.wait(), 0) << run.err();
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_TRUE(contains(run.out(), std::string("r") + rank + "/3 l" + rank + "/3 g0 127.0.0.1 1 0 t3\n")) << run.out();
  }
}

TEST_P(Launch, NamesASignalAndTakesTheOthersDown) {
  LaunchRun run(shell(ranks(3),
                      "[ $RANK = 1 ] || { echo up; exec sleep 60; }; sleep 1; date +%s%3N > $TEST_FOLDER/died; "
                      "kill -9 $$"));
  EXPECT_EQ(run.wait(), 137);
  EXPECT_LT(now_ms() - read_ms(run.folder() / "died"), kSoon / 1ms);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  EXPECT_TRUE(
      run.err().ends_with(std::string("tessera launch: rank 1 on host ") + host + " failed: killed by SIGKILL\n"))
      << run.err();
  EXPECT_TRUE(run.is_gone(0ms));
}

TEST_P(Launch, KillsRanksThatWillNotEndAndWhatTheyStarted) {
  LaunchRun run(shell(ranks(3),
                      "[ $RANK = 2 ] && { sleep 1; date +%s%3N > $TEST_FOLDER/died; exit 7; }; trap '' TERM; "
                      "setsid sleep 60 & (sleep 60 &) ; sleep 60; sleep 60"));
  EXPECT_EQ(run.wait(), 7);
  EXPECT_LT(now_ms() - read_ms(run.folder() / "died"), kSoon / 1ms);
  EXPECT_TRUE(contains(run.err(), "rank 2 on host ")) << run.err();
  EXPECT_TRUE(contains(run.err(), "failed: exit status 7\n")) << run.err();
  EXPECT_TRUE(run.is_gone(100ms));
}

TEST_P(Launch, EndsWhatARankThatEndedWellLeftRunning) {
  LaunchRun run(shell(ranks(2), "setsid sleep 60 & sleep 60 & exit 0"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(run.is_gone(100ms));
}

TEST_P(Launch, NamesTheRankThatCausedTheFailureByItsOwnWord) {
  // Rank 0 fails first, but says that another rank is the reason.
  const std::string follower = last_words(43, "rank 1 is gone", /*is_consequence=*/true, 5) + "; exit 43";
  const std::string culprit = last_words(9, "loss is NaN", /*is_consequence=*/false, 6) + "; sleep 0.2; exit 9";
  LaunchRun run(shell(ranks(3), "case $RANK in 0) " + follower + ";; 1) " + culprit + ";; esac; sleep 60"));
  EXPECT_EQ(run.wait(), 9);
  EXPECT_TRUE(contains(run.err(), "rank 1 on host ")) << run.err();
  EXPECT_TRUE(contains(run.err(), "failed: loss is NaN (exit status 9)\n")) << run.err();
}

TEST_P(Launch, WritesLogsAndShowsTheLastLinesOfTheOneThatFailed) {
  const LogFolder logs;
  LaunchRun run(shell(ranks(3, {"--log_dir", logs.path()}),
                      "echo from $RANK; echo why $RANK >&2; [ $RANK = 2 ] && exit 3; sleep 60"));
  EXPECT_EQ(run.wait(), 3);
  EXPECT_TRUE(run.err().ends_with("its last lines:\n  | from 2\n  | why 2\nlog: " + logs.path() + "/rank-2.log\n"))
      << run.err();
  EXPECT_FALSE(contains(run.out(), "from 2"));
}

TEST_P(Launch, PrefixesLinesWithTheRank) {
  LaunchRun run(shell(ranks(2, {"--tee"}), "echo one; printf two; echo bad >&2"));
  EXPECT_EQ(run.wait(), 0);
  for (const char* line : {"[rank 0] one\n", "[rank 0] two\n", "[rank 1] one\n", "[rank 1] two\n"}) {
    EXPECT_TRUE(contains(run.out(), line)) << run.out();
  }
  EXPECT_TRUE(contains(run.err(), "[rank 1] bad\n")) << run.err();
}

TEST_P(Launch, TakesTorchrunsFlags) {
  LaunchRun run(shell(
      ranks(1, {"--standalone", "--master_addr", "bad.invalid", "--no_python", "--tee", "3", "--role", "trainer"}),
      "echo hello"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "[rank 0] hello\n");
  EXPECT_TRUE(contains(run.err(), "--no_python, --role change nothing here\n")) << run.err();
}

TEST_P(Launch, KeepsLogsOfAllRanksBesideTheTee) {
  const LogFolder logs;
  LaunchRun run(shell(ranks(2, {"--tee", "--log_dir=" + logs.path()}), "echo hello $RANK"));
  EXPECT_EQ(run.wait(), 0);
  for (const std::string rank : {"0", "1"}) {
    std::ifstream log(logs.path() + "/rank-" + rank + ".log");
    std::string line;
    std::getline(log, line);
    EXPECT_EQ(line, "hello " + rank);
    EXPECT_TRUE(contains(run.out(), "[rank " + rank + "] hello " + rank + "\n")) << run.out();
  }
}

TEST_P(Launch, RestartsAllRanks) {
  LaunchRun run(shell(ranks(2, {"--max_restarts", "3"}),
                      "echo attempt $TORCHELASTIC_RESTART_COUNT rank $RANK; "
                      "[ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ] && exit 5; sleep 0.5"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(contains(run.err(), "restart 1 of 3 after rank 1 failed: exit status 5\n")) << run.err();
  EXPECT_TRUE(contains(run.out(), "attempt 1 rank 0\n"));
  EXPECT_TRUE(contains(run.out(), "attempt 1 rank 1\n"));
}

TEST_P(Launch, GivesUpAfterTheLastRestart) {
  LaunchRun run(shell(ranks(2, {"--max_restarts", "1"}), "[ $RANK = 1 ] && exit 5; sleep 60"));
  EXPECT_EQ(run.wait(), 5);
  EXPECT_TRUE(contains(run.err(), "restart 1 of 1 after rank 1")) << run.err();
  EXPECT_TRUE(contains(run.err(), "failed: exit status 5\n")) << run.err();
  EXPECT_TRUE(run.is_gone(0ms));
}

TEST_P(Launch, PinsRanksToDisjointCoresWhileThereAreEnough) {
  cpu_set_t mask;
  sched_getaffinity(0, sizeof mask, &mask);
  if (CPU_COUNT(&mask) < 2) GTEST_SKIP() << "one processor only";
  LaunchRun run(shell(ranks(2, {"--pin", "yes"}), "taskset -cp $$ | sed 's/.*: /cpus /'"));
  EXPECT_EQ(run.wait(), 0);
  std::istringstream lines(run.out());
  std::set<std::string> lists;
  for (std::string line; std::getline(lines, line);) lists.insert(line);
  EXPECT_EQ(lists.size(), 2U) << run.out();
  EXPECT_FALSE(contains(run.err(), "pinned"));
}

TEST_P(Launch, SaysOnceThatMoreRanksThanCoresShareThem) {
  cpu_set_t mask;
  sched_getaffinity(0, sizeof mask, &mask);
  LaunchRun run(shell(ranks(CPU_COUNT(&mask) + 1, {"--pin", "yes"}), "echo $OMP_NUM_THREADS"));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(contains(run.err(), "none is pinned")) << run.err();
  EXPECT_EQ(run.err().find("pinned"), run.err().rfind("pinned"));
}

TEST_P(Launch, WorksInsideASlurmStepAndPassesItsVariablesOn) {
  LaunchRun run(shell(ranks(2), "echo job $SLURM_JOB_ID of rank $RANK"), {{"SLURM_JOB_ID", "77"},
                                                                          {"SLURM_JOBID", "77"},
                                                                          {"SLURM_NNODES", "2"},
                                                                          {"SLURM_NODEID", "1"},
                                                                          {"SLURM_JOB_NODELIST", "node[1-2]"},
                                                                          {"SLURM_NODELIST", "node[1-2]"},
                                                                          {"SLURM_TASKS_PER_NODE", "1(x2)"},
                                                                          {"SLURM_PROCID", "1"},
                                                                          {"SLURM_STEP_ID", "0"},
                                                                          {"SLURM_STEPID", "0"},
                                                                          {"PMIX_RANK", "1"}});
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(contains(run.out(), "job 77 of rank 0\n")) << run.err();
  EXPECT_TRUE(contains(run.out(), "job 77 of rank 1\n")) << run.err();
}

TEST_P(Launch, PassesBytesThatAreNotUtf8) {
  const LogFolder logs;
  const std::string bytes = "a\xff%41 \xc3\x28\xe9";
  Words words = ranks(2, {"--log_dir", logs.path() + "\xfe"});
  words.insert(words.end(), {"sh", "-c", "printf '<%s|%s>' \"$1\" \"$ODD\"", "sh", bytes});
  LaunchRun run(words, {{"ODD", bytes}, {"SLURM_JOB_NAME", bytes}});
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "<" + bytes + "|" + bytes + ">");
  std::stringstream log;
  log << std::ifstream(logs.path() + "\xfe/rank-1.log").rdbuf();
  EXPECT_EQ(log.str(), "<" + bytes + "|" + bytes + ">");
}

// If the descriptor were closed, the next socket would take its number.
TEST_P(Launch, WorksWithoutStandardStreams) {
  for (const char* closed : {">&-", "2>&-", "<&- >&- 2>&-"}) {
    LaunchRun run(shell(ranks(2), "echo out && echo err >&2 && echo $RANK > $TEST_FOLDER/wrote-$RANK"), {},
                  {"sh", "-c", std::string("exec \"$@\" ") + closed, "sh"});
    EXPECT_EQ(run.wait(), 0) << closed << run.err();
    EXPECT_TRUE(fs::exists(run.folder() / "wrote-0") && fs::exists(run.folder() / "wrote-1")) << closed << run.err();
  }
}

TEST_P(Launch, GivesRanksNoOpenFilesOfItsOwn) {
  LaunchRun run(shell(ranks(1), "ls /proc/$$/fd > $TEST_FOLDER/fds; true"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  std::ifstream list(run.folder() / "fds");
  for (int fd; list >> fd;) EXPECT_TRUE(fd <= 2 || fd == 10 || fd == 255) << fd;  // the shell's own
}

TEST_P(Launch, UsesATmpdirThatIsThere) {
  LaunchRun missing(shell(ranks(2), "echo $TMPDIR"), {{"TMPDIR", "/no/such/folder"}});
  EXPECT_EQ(missing.wait(), 0) << missing.err();
  EXPECT_EQ(missing.out(), "/tmp\n/tmp\n");
  EXPECT_TRUE(contains(missing.err(), "/no/such/folder")) << missing.err();
  LaunchRun relative(shell(ranks(2), "echo $TMPDIR"), {{"TMPDIR", "."}});
  EXPECT_EQ(relative.wait(), 0) << relative.err();
  EXPECT_TRUE(relative.out().starts_with("/")) << relative.out();
}

TEST_P(Launch, LeavesNothingWhenItIsKilledItself) {
  LaunchRun run(shell(ranks(2), "trap '' TERM; echo up; setsid sleep 60 & sleep 60"));
  run.wait_for_output("up", 2);
  run.signal(SIGKILL);
  EXPECT_EQ(run.wait(), 137);
  EXPECT_TRUE(run.is_gone(kSoon));
}

}  // namespace
}  // namespace tessera::testing
