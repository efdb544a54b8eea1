#include "monitor/utilisation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace tessera {
namespace {

constexpr double kMb = 1 << 20;

// Readings one after another.
UsageReader readings(std::vector<Usage> all) {
  return [all = std::move(all), next = std::size_t{0}]() mutable { return all.at(next++); };
}

Usage usage(double allocated, double busy, double peak) {
  Usage one;
  one.allocated_bytes = allocated * kMb;
  one.reserved_bytes = 2 * allocated * kMb;
  one.used_bytes = 3 * allocated * kMb;
  one.busy_percent = busy;
  one.peak_bytes = peak * kMb;
  return one;
}

// Enough time passes that a reading costs less than a hundredth of it.
void step() {
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

TEST(Utilisation, MeansAreOverStepsAndRanks) {
  UtilisationMeter first(readings({{}, usage(10, 0, 11), usage(20, 100, 30)}), true);
  UtilisationMeter second(readings({{}, usage(60, 50, 90)}), true);
  first.begin();
  second.begin();
  step();
  first.sample();
  second.sample();
  step();
  first.sample();
  const LogRecord summary = UtilisationMeter::summary_of({first.sums(), second.sums()}, true);
  EXPECT_DOUBLE_EQ(*summary.number("avg_mem_alloc_MB"), 30);
  EXPECT_DOUBLE_EQ(*summary.number("avg_mem_reserved_MB"), 60);
  EXPECT_DOUBLE_EQ(*summary.number("avg_mem_total_MB"), 90);
  EXPECT_DOUBLE_EQ(*summary.number("avg_gpu_util_%"), 50);
  EXPECT_NEAR(*summary.number("std_gpu_util_%"), 40.824829, 1e-5);  // of 0, 100 and 50
  EXPECT_DOUBLE_EQ(*summary.number("max_mem_alloc_MB"), 90);
}

TEST(Utilisation, WhatNobodyCouldReadIsLeftOut) {
  Usage one;
  one.allocated_bytes = 5 * kMb;
  UtilisationMeter meter(readings({{}, one}), true);
  meter.begin();
  meter.sample();
  const LogRecord summary = UtilisationMeter::summary_of({meter.sums()}, true);
  EXPECT_EQ(summary.entries().size(), 1U);
  EXPECT_DOUBLE_EQ(*summary.number("avg_mem_alloc_MB"), 5);
}

TEST(Utilisation, ACpuRunHasItsProcesssOwn) {
  run_thread_ranks(2, {}, [](World& world) {
    UtilisationMeter meter(usage_reader(world), world.device().is_cuda());
    meter.begin();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (std::chrono::steady_clock::now() < end) {
    }
    meter.sample();
    const LogRecord summary = meter.summary(world);
    EXPECT_GT(*summary.number("avg_cpu_mem_MB"), 1);
    EXPECT_GE(*summary.number("max_cpu_mem_MB"), *summary.number("avg_cpu_mem_MB"));
    EXPECT_GT(*summary.number("avg_cpu_util_%"), 1);
    EXPECT_GE(*summary.number("std_cpu_util_%"), 0);
  });
}

TEST(Utilisation, ALookThatTakesLongIsTakenSeldom) {
  int num_looks = 0;
  const auto slow = [&num_looks] {
    ++num_looks;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return Usage();
  };
  UtilisationMeter meter(slow, true);
  meter.begin();
  num_looks = 0;
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    meter.sample();
  }
  EXPECT_GE(num_looks, 1);
  EXPECT_LE(num_looks, 2);
}

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
