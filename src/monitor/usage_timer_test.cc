#include "monitor/usage_timer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace tessera {
namespace {

UsageReader counting_reader() {
  return [number = 0.0]() mutable {
    Usage usage;
    usage.allocated_bytes = ++number;
    return usage;
  };
}

UsageReadings readings_after(UsageTimer& timer, std::size_t least) {
  for (int i = 0; i < 500 && timer.readings().readings.size() < least; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return timer.readings();
}

TEST(UsageTimer, ReadsByItselfUntilItIsStopped) {
  UsageTimer timer(counting_reader(), 0.002);
  EXPECT_GE(readings_after(timer, 5).readings.size(), 5u);
  timer.stop();
  const std::size_t count = timer.readings().readings.size();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(timer.readings().readings.size(), count);
  EXPECT_EQ(timer.readings().readings[2].allocated_bytes, 3.0);
  EXPECT_GT(timer.cpu_seconds(), 0);
}

// With a limit of 8: readings 2, 4, 6, 8 stay, then four more at the double period.
TEST(UsageTimer, AShortRunHasItsLastReading) {
  UsageTimer timer(counting_reader(), 60);
  timer.stop();
  timer.stop();
  EXPECT_EQ(timer.readings().readings.size(), 1u);
  EXPECT_EQ(timer.readings().allocated.peak, 1.0);
}

TEST(UsageTimer, ALongRunKeepsEverySecondReading) {
  UsageTimer timer(counting_reader(), 0.002, 8);
  UsageReadings kept = timer.readings();
  for (int i = 0; i < 500 && kept.period_seconds < 0.004; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kept = timer.readings();
  }
  EXPECT_EQ(kept.period_seconds, 0.004);
  ASSERT_GE(kept.readings.size(), 4u);
  EXPECT_LT(kept.readings.size(), 8u);
  EXPECT_EQ(kept.readings[0].allocated_bytes, 2.0);
  EXPECT_EQ(kept.readings[3].allocated_bytes, 8.0);
  EXPECT_GE(kept.allocated.count, 8);  // totals forget none
}

}  // namespace
}  // namespace tessera
