#include "launch/host_resources.h"

#include <gtest/gtest.h>

#include <set>

namespace tessera {
namespace {

using Shares = std::vector<std::vector<int>>;

std::vector<Cpu> plain_cpus(int count) {
  std::vector<Cpu> cpus;
  for (int i = 0; i < count; ++i) cpus.push_back({i, 0, i});
  return cpus;
}

// As Linux numbers them: 0..3 the first threads of four cores, 4..7 the second ones; in HostFacts' order.
std::vector<Cpu> hyperthreaded_cpus() {
  return {{0, 0, 0}, {4, 0, 0}, {1, 0, 1}, {5, 0, 1}, {2, 0, 2}, {6, 0, 2}, {3, 0, 3}, {7, 0, 3}};
}

TEST(Pinning, GivesNeighboursToARank) {
  EXPECT_EQ(share_cpus(plain_cpus(4), 2), (Shares{{0, 1}, {2, 3}}));
}

TEST(Pinning, LeavesNoCoreIdleWhenTheyDoNotDivide) {
  const Shares shares = share_cpus(plain_cpus(5), 3);
  std::set<int> seen;
  for (const auto& share : shares) {
    EXPECT_GE(share.size(), 1U);
    EXPECT_LE(share.size(), 2U);
    for (int cpu : share) EXPECT_TRUE(seen.insert(cpu).second) << "two ranks share cpu " << cpu;
  }
  EXPECT_EQ(seen.size(), 5U);
}

TEST(Pinning, PinsNobodyWhenThereAreTooFew) {
  EXPECT_TRUE(share_cpus(plain_cpus(2), 3).empty());
  EXPECT_TRUE(share_cpus({}, 1).empty());
}

TEST(Pinning, KeepsHyperthreadsOfACoreWithOneRank) {
  EXPECT_EQ(share_cpus(hyperthreaded_cpus(), 2), (Shares{{0, 4, 1, 5}, {2, 6, 3, 7}}));
  EXPECT_EQ(share_cpus(hyperthreaded_cpus(), 3), (Shares{{0, 4, 1, 5}, {2, 6}, {3, 7}}));
}

TEST(Pinning, SplitsHyperthreadsWhenThereAreMoreRanksThanCores) {
  const Shares shares = share_cpus(hyperthreaded_cpus(), 8);
  ASSERT_EQ(shares.size(), 8U);
  for (const auto& share : shares) EXPECT_EQ(share.size(), 1U);
}

TEST(Pinning, CountsCoresNotHyperthreadsAsThreads) {
  EXPECT_EQ(threads_per_rank(hyperthreaded_cpus(), 2), 2);
  EXPECT_EQ(threads_per_rank(plain_cpus(2), 4), 1);
  EXPECT_EQ(threads_per_rank({}, 1), 1);
}

}  // namespace

}  // namespace tessera
