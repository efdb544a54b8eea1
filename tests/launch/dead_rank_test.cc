// Ranks without our launcher, started by an mpirun that does not care when one dies, as plain srun does: the others
// notice, and all name the same rank and its host.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/host.h"
#include "run.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;
struct Died {
  Ended ended;
  double seconds = 0;  // since the rank failed
};

Died run_with_culprit(const std::string& fault, int num_ranks, int culprit, const std::string& mpirun_options) {
  const TestFolder folder;
  Died died;
  died.ended = run_shell("TEST_FOLDER=" + folder.path().string() + " TEST_CULPRIT=" + std::to_string(culprit) +
                         " timeout -k 1 60 " TESSERA_MPIRUN
                         " --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 " +
                         mpirun_options + " -np " + std::to_string(num_ranks) + " " FAULT_RANK " " + fault);
  died.seconds = static_cast<double>(now_ms() - read_ms(folder / "died")) / 1000;
  return died;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class DeadRank : public ::testing::TestWithParam<std::pair<int, int>> {};  // ranks, culprit
INSTANTIATE_TEST_SUITE_P(Places, DeadRank,
                         ::testing::Values(std::pair{2, 0}, std::pair{2, 1}, std::pair{4, 0}, std::pair{4, 2}));

TEST_P(DeadRank, IsNamedByAllOthersInSeconds) {
  const auto [num_ranks, culprit] = GetParam();
  const Died died = run_with_culprit("die", num_ranks, culprit, "--enable-recovery");
  const std::string& text = died.ended.output;
  const std::string verdict = "rank " + std::to_string(culprit) + " on " + host_name() + " is gone: its process ended";
  EXPECT_EQ(count_of(text, verdict), num_ranks - 1) << text;
  EXPECT_EQ(count_of(text, " is gone"), num_ranks - 1) << text;  // nobody else is blamed
  EXPECT_LT(died.seconds, kSoon / 1s) << text;
}

// A stopped rank is not dead: its kernel answers for it. It is judged by the limit of its collective, here 2 s.
TEST_P(DeadRank, ThatIsOnlyStoppedIsNamedByItsCollectivesLimit) {
  const auto [num_ranks, culprit] = GetParam();
  const Died died = run_with_culprit("stop", num_ranks, culprit, "");
  const std::string& text = died.ended.output;
  const std::string who = "rank " + std::to_string(culprit) + " on " + host_name();
  EXPECT_EQ(died.ended.status, 43) << text;
  EXPECT_TRUE(contains(text, who + (culprit == 0 ? " has not answered for " : " did not answer:"))) << text;
  EXPECT_TRUE(contains(text, "a collective took longer than 2s (--comm_timeout)")) << text;
  EXPECT_FALSE(contains(text, " is gone: ")) << text;
  EXPECT_GT(died.seconds, 1.5);
  EXPECT_LT(died.seconds, kSoon / 1s) << text;
}

TEST(QuietDeath, ARankThatEndsByItselfWithoutAWordIsNoticedToo) {
  const Died died = run_with_culprit("exit", 2, 0, "--enable-recovery");
  EXPECT_TRUE(contains(died.ended.output, "rank 0 on " + host_name() + " is gone: its process ended"))
      << died.ended.output;
  EXPECT_LT(died.seconds, kSoon / 1s);
}

}  // namespace
}  // namespace tessera::testing
