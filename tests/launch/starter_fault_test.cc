// What stands between the launcher and its ranks fails: an mpirun that is stopped, a minder, MPI's own start and end.
// Each is named, and nothing hangs.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "core/host.h"
#include "run.h"
#include "support/program.h"

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;

Words two_ranks(const Words& command = {}) {
  Words words = {"--starter", "mpirun", "--nproc_per_node", "2"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// MPI_Finalize waits for mpirun.
TEST(StarterFault, AStoppedMpirunIsContinuedSoThatRanksCanLeave) {
  LaunchRun run(shell(two_ranks(), "exec " + tessera_binary() + " comm-test -b 4M -e 4M -n 1000 --device cpu"));
  run.wait_for_output("Running on", 1);
  const pid_t mpirun = run.mpirun();
  ASSERT_GT(mpirun, 0);
  kill(mpirun, SIGSTOP);
  EXPECT_EQ(run.wait(kSoon), 0) << run.err();
  EXPECT_TRUE(contains(run.err(), "mpirun (process " + std::to_string(mpirun) + ") is stopped: continuing it"))
      << run.err();
  EXPECT_TRUE(run.is_gone(kSoon));
}

// It has said goodbye to the others, so nobody waits for it.
TEST(StarterFault, ARankThatIsStoppedAfterTheOthersHaveEndedIsContinued) {
  LaunchRun run(shell(two_ranks(), "echo up; [ $RANK = 0 ] && exit 0; kill -STOP $$; exit 0"));
  EXPECT_EQ(run.wait(kSoon), 0) << run.err();
  EXPECT_TRUE(contains(run.err(), "rank 1 on " + host_name() + ", which alone has not ended, (process ")) << run.err();
  EXPECT_TRUE(run.is_gone(kSoon));
}

TEST(StarterFault, AStoppedMinderIsNamedAndContinued) {
  for (const char* starter : {"fork", "mpirun"}) {
    LaunchRun run(shell({"--starter", starter, "--nproc_per_node", "2"}, "echo up; sleep 1; exit 0"));
    run.wait_for_output("up", 2);
    const pid_t minder = run.processes_named("tessera-minder").at(0);
    kill(minder, SIGSTOP);
    EXPECT_EQ(run.wait(kSoon), 0) << run.err();
    EXPECT_TRUE(contains(run.err(), "the minder of rank ")) << run.err();
    EXPECT_TRUE(contains(run.err(), " (process " + std::to_string(minder) + ") is stopped: continuing it"))
        << run.err();
    EXPECT_TRUE(run.is_gone(kSoon));
  }
}

Variables stopping_in(const std::string& where) {
  return {{"TEST_STOP_IN", where}, {"LD_PRELOAD", TESSERA_STOP_IN_MPI}};
}

// The launcher does not know yet whose it is.
TEST(StarterFault, AMinderThatIsStoppedBeforeItHasSaidHelloIsContinued) {
  for (const char* starter : {"fork", "mpirun"}) {
    LaunchRun run(shell({"--starter", starter, "--nproc_per_node", "2"}, "echo up; exit 0"),
                  stopping_in("tessera-minder"));
    EXPECT_EQ(run.wait(kSoon), 0) << run.err();
    EXPECT_TRUE(contains(run.err(), "is stopped: continuing it")) << run.err();
    EXPECT_TRUE(run.is_gone(kSoon));
  }
}

TEST(StarterFault, AMinderThatIsKilledBeforeItHasSaidHelloIsTheOneToBlame) {
  LaunchRun run(shell({"--starter", "mpirun", "--nproc_per_node", "1"}, "sleep 30"), stopping_in("tessera-minder"));
  while (run.processes_named("tessera-minder").empty()) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(300ms);  // so that the launcher has seen it
  kill(run.processes_named("tessera-minder").at(0), SIGKILL);
  const int status = run.wait(kSoon);
  const std::string early = "tessera launch: rank 0 on " + host_name() + " did not start: its minder process has ended";
  // On a machine under load it may have been continued, and have said hello, before.
  const std::string late = "tessera launch: rank 0 on host " + host_name();
  EXPECT_TRUE(contains(run.err(), status == 1 ? early : late)) << status << run.err();
}

// An mpirun that does not notice it in time is ended, and says that it passes that signal on: no explanation.
TEST(StarterFault, AKilledMinderIsNamedWhateverMpirunSays) {
  LaunchRun run(shell({"--starter", "mpirun", "--nproc_per_node", "1"}, "echo up; sleep 30"));
  run.wait_for_output("up", 1);
  kill(run.mpirun(), SIGSTOP);
  kill(run.processes_named("tessera-minder").at(0), SIGKILL);
  EXPECT_EQ(run.wait(kSoon), 137) << run.err();
  EXPECT_TRUE(contains(run.err(), "tessera launch: rank 0 on host " + host_name())) << run.err();
  EXPECT_FALSE(contains(run.err(), "mpirun ended the ranks")) << run.err();
  EXPECT_TRUE(run.is_gone(kSoon));
}

// Nobody waits for the launcher while ranks compute; still, its silence ends the run at the limit, here 2 s.
TEST(StarterFault, AStoppedLauncherIsNamedAndEndsWithItsRanks) {
  LaunchRun run(two_ranks({FAULT_RANK, "compute"}));
  run.wait_for_output("Running on", 1);
  std::this_thread::sleep_for(500ms);
  run.signal(SIGSTOP);
  EXPECT_EQ(run.wait(kSoon), 43) << run.err();  // the limit, a beat or two, and the end
  EXPECT_TRUE(contains(run.err(), "the launcher on " + host_name() + " has not answered for 2s: it is stopped"))
      << run.err();
  EXPECT_TRUE(run.is_gone(kSoon));
}

// As scontrol suspend and resume do: the time that all stand still counts for nobody, though it is twice the limit.
TEST(StarterFault, ASuspendedJobGoesOn) {
  const std::string line =
      "exec " + tessera_binary() + " comm-test -b 4M -e 4M -n 1000000 --device cpu --comm_timeout 2s";
  for (const char* starter : {"launch", "mpirun"}) {
    const bool is_launched = std::string(starter) == "launch";
    const std::string ranks = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 sh -c '" + line + "'";
    StartedRun run(is_launched ? Words{tessera_binary(), "launch", "--nproc_per_node", "2", "sh", "-c", line}
                               : Words{"sh", "-c", "exec " + ranks});
    run.wait_for_output("Running on", 1);
    std::this_thread::sleep_for(300ms);
    const auto processes = run.processes();
    for (const pid_t pid : processes) kill(pid, SIGSTOP);
    std::this_thread::sleep_for(4s);
    for (const pid_t pid : processes) kill(pid, SIGCONT);
    std::this_thread::sleep_for(4s);
    EXPECT_FALSE(run.status()) << starter << run.err();
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(kSoon), is_launched ? 143 : 1) << starter << run.err();  // 1: mpirun's own way
  }
}

TEST(StarterFault, ARankThatIsStoppedInMpiInitIsNamed) {
  LaunchRun run(two_ranks({FAULT_RANK, "leave"}), stopping_in("MPI_Init_thread"));
  EXPECT_EQ(run.wait(kSoon), 42) << run.err();
  EXPECT_TRUE(contains(run.err(), "rank 1 on " + host_name() + " did not answer: MPI_Init took longer than 8s"))
      << run.err();
  EXPECT_TRUE(run.is_gone(kSoon));
}

TEST(StarterFault, ARankThatIsStoppedInMpiFinalizeIsNamed) {
  LaunchRun run(two_ranks({FAULT_RANK, "none"}), stopping_in("MPI_Finalize"));
  EXPECT_EQ(run.wait(kSoon), 43) << run.err();
  EXPECT_TRUE(contains(run.err(), "rank 1 on " + host_name() + " did not answer:")) << run.err();
  EXPECT_TRUE(contains(run.err(), "leave_world")) << run.err();
  EXPECT_TRUE(run.is_gone(kSoon));
}

const std::string kStopsInFinalize =
    "TEST_STOP_IN=MPI_Finalize exec " TESSERA_MPIRUN
    " --allow-run-as-root --oversubscribe --bind-to none -x LD_PRELOAD=" TESSERA_STOP_IN_MPI " -np 2 " FAULT_RANK
    " none";

TEST(StarterFault, WithoutOurLauncherMpiFinalizeHasALimitToo) {
  StartedRun run({"sh", "-c", kStopsInFinalize});
  EXPECT_EQ(run.wait(kSoon), 43) << run.err();
  EXPECT_TRUE(contains(run.err(), "MPI_Finalize has waited for 2s")) << run.err();
}

TEST(StarterFault, AJobThatIsSuspendedInMpiFinalizeEndsWell) {
  StartedRun run({"sh", "-c", kStopsInFinalize});
  const auto one_is_stopped = [&] {
    const auto ranks = run.processes_named("fault_rank");
    return std::any_of(ranks.begin(), ranks.end(), [](pid_t pid) { return process_state(pid) == 'T'; });
  };
  while (!run.status() && !one_is_stopped()) std::this_thread::sleep_for(5ms);
  const auto processes = run.processes();
  for (const pid_t pid : processes) kill(pid, SIGSTOP);
  std::this_thread::sleep_for(4s);
  for (const pid_t pid : processes) kill(pid, SIGCONT);
  EXPECT_EQ(run.wait(kSoon), 0) << run.err();
}

}  // namespace
}  // namespace tessera::testing
