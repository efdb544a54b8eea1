// mpirun dies, by a signal or by a crash of its own: it is to blame for what ends after it, and for nothing before.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "run.h"
#include "support/test_folder.h"

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;

const Words kTwoRanks = {"--starter", "mpirun", "--nproc_per_node", "2"};

void expect_mpirun_blamed(LaunchRun& run) {
  EXPECT_EQ(run.wait(kSoon), 137) << run.err();
  EXPECT_TRUE(contains(run.err(), "tessera launch: mpirun was killed by SIGKILL while ranks were running\n"))
      << run.err();
  EXPECT_FALSE(contains(run.err(), "tessera launch: rank")) << run.err();
  EXPECT_TRUE(run.is_gone(kSoon));
}

TEST(MpirunDeath, IsNotBlamedOnARank) {
  // A launcher that is stopped learns of it together with the ranks' ends.
  for (const bool launcher_is_stopped : {false, true, false}) {
    const TestFolder temporary;
    LaunchRun run(shell(kTwoRanks, "exec " + tessera_binary() + " comm-test -b 1M -e 1M -n 100000 --device cpu"),
                  {{"TMPDIR", temporary.path()}});
    run.wait_for_output("Running on", 1);
    std::this_thread::sleep_for(500ms);
    ASSERT_GT(run.mpirun(), 0);
    if (launcher_is_stopped) run.signal(SIGSTOP);
    kill(run.mpirun(), SIGKILL);
    expect_mpirun_blamed(run);
    for (const auto& left : std::filesystem::recursive_directory_iterator(temporary.path())) {
      EXPECT_FALSE(contains(left.path().filename().string(), "pid.")) << left.path();  // Open MPI's own folder
    }
  }
}

// Its minder learns of both ends at once.
TEST(MpirunDeath, IsNotBlamedOnARankThatDiesOfItAtOnce) {
  for (const bool launcher_is_stopped : {false, true}) {
    LaunchRun run(shell(kTwoRanks,
                        "starter() { read _ _ _ pid _ < /proc/$PPID/stat; echo $pid; }; mpirun=$(starter); echo up; "
                        "while [ $(starter) = $mpirun ]; do :; done; exit 1"));
    run.wait_for_output("up", 2);
    if (launcher_is_stopped) run.signal(SIGSTOP);
    kill(run.mpirun(), SIGKILL);
    expect_mpirun_blamed(run);
  }
}

TEST(MpirunDeath, IsNotHiddenByWhatRanksDoWhenTheyAreEndedForIt) {
  const std::string stopped = last_words(143, "SIGTERM: stopped after step 5", /*is_consequence=*/false) + "; exit 143";
  const std::string complains = last_words(1, "MPI is gone", /*is_consequence=*/false) + "; exit 1";
  for (const std::string& answer : {stopped, complains, std::string("exit 0"), std::string("kill -ABRT $$")}) {
    LaunchRun run(
        shell(kTwoRanks, "answer() { " + answer + "; }; trap answer TERM; echo up; while :; do sleep 0.05; done"));
    run.wait_for_output("up", 2);
    kill(run.mpirun(), SIGKILL);
    SCOPED_TRACE(answer);
    expect_mpirun_blamed(run);
  }
}

// To a script that requeues what was stopped by SIGUSR1, this run was not: rank 1 could not finish.
TEST(MpirunDeath, IsNotHiddenByARankThatHasStoppedAsAsked) {
  LaunchRun run(shell(kTwoRanks,
                      "trap 'echo asked; [ $RANK = 0 ] && exit 138; sleep 30' USR1; echo up; "
                      "while :; do sleep 0.05; done"));
  run.wait_for_output("up", 2);
  run.signal(SIGUSR1);
  run.wait_for_output("asked", 2);
  while (run.processes_named("tessera-minder").size() > 1) std::this_thread::sleep_for(10ms);
  kill(run.mpirun(), SIGKILL);
  expect_mpirun_blamed(run);
}

// Open MPI's own crashes sometimes while it ends.
TEST(MpirunDeath, AfterTheRanksChangesNoVerdict) {
  const TestFolder folder;
  std::ofstream(folder / "mpirun") << "#!/bin/sh\nulimit -c 0\n" TESSERA_MPIRUN " \"$@\"\nkill -SEGV $$\n";
  std::filesystem::permissions(folder / "mpirun", std::filesystem::perms::owner_all);
  struct Ending {
    std::string ranks;
    int status;
    std::string verdict;
  };
  const std::string gone = last_words(43, "a rank is gone", /*is_consequence=*/true) + "; exit 43";
  for (const auto& [ranks, status, verdict] :
       {Ending{"exit 0", 0, "mpirun was killed by SIGSEGV after all ranks had ended well"},
        Ending{"[ $RANK = 1 ] && exit 7; sleep 30", 7, "rank 1 on host "}, Ending{gone, 43, "a rank is gone"}}) {
    LaunchRun run(shell(kTwoRanks, ranks), {{"PATH", folder.path().string() + ":" + std::getenv("PATH")}});
    EXPECT_EQ(run.wait(kSoon), status) << run.err();
    EXPECT_TRUE(contains(run.err(), verdict)) << run.err();
    EXPECT_FALSE(contains(run.err(), "while ranks were running")) << run.err();
    EXPECT_TRUE(run.is_gone(kSoon));
  }
}

}  // namespace
}  // namespace tessera::testing
