#include "comm/gpu_sharing.h"

#include <gtest/gtest.h>

#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "core/error.h"

namespace tessera {
namespace {

// What each rank is told; empty: it may go on.
std::vector<std::string> refusals(const std::vector<std::string>& hosts, const std::vector<std::string>& gpus) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> messages(hosts.size());
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        refuse_shared_gpus(*store, static_cast<int>(rank), hosts, gpus[rank]);
      } catch (const UsageError& error) {
        messages[rank] = error.what();
      }
    });
  }
  ranks.clear();  // joins
  return messages;
}

TEST(GpuSharing, FourRanksOnTwoGpusAreRefusedOnAllOfThem) {
  const auto messages = refusals({"n1", "n1", "n1", "n1"}, {"H200 A", "H200 B", "H200 A", "H200 B"});
  for (const std::string& message : messages) {
    EXPECT_EQ(
        message,
        "ranks 0, 2 on host n1 would share one GPU (H200 A): the 4 ranks there see 2 GPUs; start one rank per GPU, "
        "or give --share_gpus");
  }
}

TEST(GpuSharing, AGpuPerRankIsRight) {
  const std::vector<std::string> none(4);
  EXPECT_EQ(refusals({"n1", "n1", "n1", "n1"}, {"A", "B", "C", "D"}), none);
  EXPECT_EQ(refusals({"n1", "n2", "n1", "n2"}, {"A", "A", "B", "B"}), none);  // other hosts' are others
}

}  // namespace
}  // namespace tessera
