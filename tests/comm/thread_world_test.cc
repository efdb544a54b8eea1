#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/collective_checks.h"
#include "core/error.h"

namespace tessera {
namespace {

WorldOptions options(int ranks_per_node = 0, int timeout_ms = 60'000) {
  WorldOptions options;
  options.ranks_per_node = ranks_per_node;
  options.comm_timeout = std::chrono::milliseconds(timeout_ms);
  return options;
}

std::string failure_of(int num_ranks, const WorldOptions& with, const std::function<void(World&)>& body) {
  try {
    run_thread_ranks(num_ranks, with, body);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing failed";
}

class ThreadWorld : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(ThreadWorld, DoesEverythingThatABackendMust) {
  const auto [num_ranks, ranks_per_node] = GetParam();
  run_thread_ranks(num_ranks, options(ranks_per_node),
                   [&](World& world) { check_everything(world, GetParam().second); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadWorld,
                         testing::Values(std::pair{1, 0}, std::pair{2, 0}, std::pair{3, 0}, std::pair{4, 2},
                                         std::pair{5, 2}));

TEST(ThreadWorldFaults, NamesTheRankThatNeverEnteredACollective) {
  const std::string message = failure_of(3, options(0, 300), [](World& world) {
    world.all().barrier("warm-up")->wait();
    // Rank 1 is busy elsewhere until long after the time limit.
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    world.all().all_reduce(at::zeros({8}), ReduceOp::SUM, "block.7")->wait();
  });
  EXPECT_NE(message.find("longer than 300ms (--comm_timeout)"), std::string::npos) << message;
  EXPECT_NE(message.find("never entered it:\n  rank 1: last finished #2 barrier of 'warm-up'"), std::string::npos)
      << message;
  EXPECT_NE(message.find("#3 all_reduce of 'block.7' (32 bytes, Float sum)"), std::string::npos) << message;
  EXPECT_NE(message.find("entered it:\n  ranks 0, 2: waiting in it"), std::string::npos) << message;
}

TEST(ThreadWorldFaults, NamesTheRankThatCalledWithAnotherSize) {
  const std::string message = failure_of(
      3, options(), [](World& world) { world.all().all_reduce(at::zeros({world.rank() == 2 ? 5 : 4}))->wait(); });
  EXPECT_NE(
      message.find("rank 0 calls all_reduce of 4 Float elements, sum, rank 2 calls all_reduce of 5 Float elements"),
      std::string::npos)
      << message;
}

TEST(ThreadWorldFaults, NamesTheRankThatCalledAnotherOperation) {
  const std::string message = failure_of(2, options(), [](World& world) {
    at::Tensor tensor = at::zeros({4});
    if (world.rank() == 0) world.all().all_reduce(tensor)->wait();
    if (world.rank() == 1) world.all().broadcast(tensor, 0)->wait();
  });
  EXPECT_NE(message.find("rank 1 calls broadcast of 4 Float elements, root 0"), std::string::npos) << message;
}

TEST(ThreadWorldFaults, AnExceptionOnOneRankEndsTheOthersAndIsTheOneRethrown) {
  const std::string message = failure_of(4, options(), [](World& world) {
    if (world.rank() == 3) throw Error("the disk is full");
    world.all().barrier()->wait();
  });
  EXPECT_EQ(message, "the disk is full");
}

}  // namespace
}  // namespace tessera
