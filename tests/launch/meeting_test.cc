// Ranks that cannot meet, started without our launcher: each ends in seconds and says why.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/program.h"

namespace tessera {
namespace {

// A quick run, in case the ranks do meet.
const std::string kCommTest = " comm-test -b 8 -e 8 -n 1 -w 0 --start_timeout 2s";

Ended under_mpirun(const std::string& shell_line) {
  return run_shell("mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 sh -c '" + shell_line + "'");
}

TEST(Meeting, UnderPlainMpirunARankThatNeverComesEndsTheOthersInSeconds) {
  const Ended ended = under_mpirun("[ $OMPI_COMM_WORLD_RANK = 1 ] && exec sleep 60; exec " + binary() + kCommTest);
  EXPECT_EQ(ended.status, 42) << ended.output;
  EXPECT_TRUE(contains(ended.output, "MPI_Init has waited for 2s: not all ranks have reached it")) << ended.output;
  EXPECT_LT(ended.seconds.count(), 15);
}

TEST(Meeting, UnderPlainMpirunADifferentSettingIsNamedWithItsRank) {
  const Ended ended = under_mpirun("exec " + binary() + kCommTest + " --ranks_per_node $((1 + OMPI_COMM_WORLD_RANK))");
  EXPECT_EQ(ended.status, 42) << ended.output;
  EXPECT_TRUE(contains(ended.output, "has ranks_per_node 2, rank 0 on ")) << ended.output;
}

TEST(Meeting, UnderPlainMpirunAnUnknownHeadIsNamed) {
  const Ended ended = under_mpirun("exec env MASTER_ADDR=no-such-host.invalid " + binary() + kCommTest);
  EXPECT_EQ(ended.status, 42) << ended.output;
  EXPECT_TRUE(contains(ended.output, "'no-such-host.invalid' cannot be resolved")) << ended.output;
}

TEST(Meeting, RanksWithoutMpiAreToldHowToStart) {
  const Ended ended =
      run_shell("RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 " + binary() + kCommTest);
  EXPECT_EQ(ended.status, 42) << ended.output;
  EXPECT_TRUE(contains(ended.output, "rank 0 of 2 was started without MPI")) << ended.output;
}

TEST(Meeting, AContradictionInTheEnvironmentIsRefusedWithBothSides) {
  const Ended ended = under_mpirun("exec env WORLD_SIZE=1 " + binary() + kCommTest);
  EXPECT_EQ(ended.status, 2) << ended.output;
  EXPECT_TRUE(contains(ended.output, "WORLD_SIZE=1, but OMPI_COMM_WORLD_SIZE=2")) << ended.output;
}

TEST(Meeting, ADeviceThatIsNotThereIsRefusedByOneRankToo) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "this machine has a GPU";
  const Ended ended = run_shell(binary() + kCommTest + " --device cuda");
  EXPECT_EQ(ended.status, 2) << ended.output;
  EXPECT_TRUE(contains(ended.output, "device=cuda needs a GPU")) << ended.output;
}

}  // namespace
}  // namespace tessera
