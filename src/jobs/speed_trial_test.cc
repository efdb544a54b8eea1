#include "jobs/speed_trial.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera {
namespace {

// 5 s, and 2 or 3 s more for each block on the device or the host; the first trial is slower.
struct Trials {
  double unit = 1;  // in seconds
  std::vector<BlockCounts> made{};
  std::vector<std::int64_t> counted{};

  double predict(const BlockCounts& whole) {
    return extrapolated_seconds(whole, [&](const BlockCounts& blocks, const TrialLength& length) {
      made.push_back(blocks);
      counted.push_back(length.counted);
      const double once = made.size() == 1 ? 7 : 0;
      return unit *
             (once + 5.0 + 2.0 * static_cast<double>(blocks.on_device) + 3.0 * static_cast<double>(blocks.on_host));
    });
  }
};

TEST(SpeedTrial, AddsWhatEachKindOfBlockTakes) {
  Trials both;
  EXPECT_DOUBLE_EQ(both.predict({.on_device = 20, .on_host = 14}), 5 + 40 + 42);
  EXPECT_EQ(both.made, (std::vector<BlockCounts>{{8, 8}, {8, 8}, {16, 8}, {8, 14}}));
  Trials on_host;
  EXPECT_DOUBLE_EQ(on_host.predict({.on_device = 0, .on_host = 24}), 5 + 72);
  EXPECT_EQ(on_host.made, (std::vector<BlockCounts>{{0, 8}, {0, 8}, {0, 16}}));
}

TEST(SpeedTrial, TriesASmallModelItself) {
  Trials small, smallest;
  EXPECT_DOUBLE_EQ(small.predict({.on_device = 9, .on_host = 0}), 5 + 18);
  EXPECT_EQ(small.made, (std::vector<BlockCounts>{{8, 0}, {8, 0}, {9, 0}}));
  EXPECT_DOUBLE_EQ(smallest.predict({.on_device = 1, .on_host = 1}), 5 + 2 + 3);
  EXPECT_EQ(smallest.made.size(), 2u);
}

// A second of them, but for slow updates and very quick ones.
TEST(SpeedTrial, QuickUpdatesAreTriedMoreOften) {
  Trials slow, quick{.unit = 1e-3}, quickest{.unit = 1e-6};
  for (Trials* trials : {&slow, &quick, &quickest}) trials->predict({.on_device = 8, .on_host = 0});
  EXPECT_EQ(slow.counted, (std::vector<std::int64_t>{8, 8}));
  EXPECT_EQ(quick.counted, (std::vector<std::int64_t>{8, 35}));  // of 28 ms
  EXPECT_EQ(quickest.counted, (std::vector<std::int64_t>{8, 64}));
}

// Noise may make the larger model the faster one.
TEST(SpeedTrial, ABlockTakesNoLessThanNothing) {
  const auto tried = [](const BlockCounts& blocks, const TrialLength&) { return blocks.on_device == 8 ? 5.0 : 4.9; };
  EXPECT_DOUBLE_EQ(extrapolated_seconds({.on_device = 24, .on_host = 0}, tried), 5.0);
}

}  // namespace
}  // namespace tessera
