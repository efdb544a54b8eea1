// The same checks as for threads, on MPI ranks: run under mpirun with any number of ranks. With TEST_DEVICE=cuda all
// ranks share the GPUs of this host and stage their tensors through pinned memory.
#include <gtest/gtest.h>

#include <cstdlib>

#include "comm/collective_checks.h"

namespace tessera {
namespace {

WorldOptions options(int ranks_per_node) {
  WorldOptions options;
  options.backend = "mpi";
  options.ranks_per_node = ranks_per_node;
  options.comm_timeout = std::chrono::seconds(120);
  options.banner = false;
  if (const char* device = std::getenv("TEST_DEVICE")) options.device = device;
  options.share_gpus = true;
  return options;
}

TEST(MpiWorld, DoesEverythingThatABackendMust) {
  check_everything(*World::create(options(0)), 0);
}

TEST(MpiWorld, DoesItByMessagesAloneWhereEveryRankIsANode) {
  check_everything(*World::create(options(1)), 1);
}

TEST(MpiWorld, AddsWithinNodesFirstWhereThereAreSeveral) {
  const auto world = World::create(options(2));
  check_layout(*world, 2);
  check_reductions(*world);
  check_same_bits_by_every_way(*world);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr && std::string(rank) != "0") {
    // Failures still show; the running commentary of one rank is enough.
    delete testing::UnitTest::GetInstance()->listeners().Release(
        testing::UnitTest::GetInstance()->listeners().default_result_printer());
  }
  return RUN_ALL_TESTS();
}
