#include "parallel/step_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/host.h"

namespace tessera {
namespace {

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

double ms_of(const StepTimes& times, StepPart part) {
  return 1000 * times.mean[static_cast<std::size_t>(part)];
}

void run_step(StepClock& clock, int data_ms) {
  {
    const auto data = clock.enter(StepPart::kData);
    sleep_ms(data_ms);
  }
  {
    const auto forward = clock.enter(StepPart::kForward);
    sleep_ms(4);
    {
      const auto wait = clock.enter(StepPart::kCommunication);
      sleep_ms(12);
    }
    sleep_ms(4);
  }
  {
    const auto evaluation = clock.enter_sealed(StepPart::kOther);
    const auto forward = clock.enter(StepPart::kForward);
    sleep_ms(6);
  }
  clock.end_step();
}

// Sleeps may be longer than asked for, never shorter; the parts cannot be longer than the whole.
TEST(StepClock, PartsAreWhatTheyTakeAndAddUpToTheStep) {
  StepClock clock(c10::kCPU);
  sleep_ms(5);  // before begin(): no step's
  clock.begin();
  run_step(clock, 50);  // the first step is left out
  const double begin = steady_seconds();
  for (int i = 0; i < 3; ++i) run_step(clock, 2);
  const double seconds = steady_seconds() - begin;
  const StepTimes times = clock.times();
  EXPECT_EQ(times.num_steps, 3);
  EXPECT_GE(ms_of(times, StepPart::kData), 2);
  EXPECT_GE(ms_of(times, StepPart::kForward), 8);
  EXPECT_GE(ms_of(times, StepPart::kCommunication), 12);
  EXPECT_GE(ms_of(times, StepPart::kOther), 6);
  EXPECT_EQ(ms_of(times, StepPart::kBackward), 0);
  double sum = 0;
  for (const double part : times.mean) sum += part;
  EXPECT_NEAR(sum, times.step_mean, 1e-9);
  EXPECT_NEAR(times.step_mean, seconds / 3, 1e-3);
  EXPECT_LT(times.step_deviation, times.step_mean);
}

TEST(StepClock, ASingleStepCounts) {
  StepClock clock(c10::kCPU);
  clock.begin();
  run_step(clock, 3);
  const StepTimes times = clock.times();
  EXPECT_EQ(times.num_steps, 1);
  EXPECT_GE(ms_of(times, StepPart::kData), 3);
}

TEST(StepClock, RecentIsSinceTheLastCall) {
  StepClock clock(c10::kCPU);
  clock.begin();
  run_step(clock, 3);
  run_step(clock, 5);
  const StepClock::Recent two = clock.take_recent();
  EXPECT_EQ(two.num_steps, 2);
  EXPECT_GE(two.mean[static_cast<std::size_t>(StepPart::kData)], 0.004);  // the mean of 3 and 5 ms
  EXPECT_EQ(clock.take_recent().num_steps, 0);
}

TEST(StepTimes, TravelsAsNumbers) {
  StepTimes times;
  times.num_steps = 5;
  times.mean[2] = 0.25;
  times.deviation[6] = 0.5;
  times.step_mean = 1;
  const StepTimes back = StepTimes::of(times.numbers());
  EXPECT_EQ(back.num_steps, 5);
  EXPECT_EQ(back.mean, times.mean);
  EXPECT_EQ(back.deviation, times.deviation);
  EXPECT_EQ(back.step_mean, 1);
}

}  // namespace
}  // namespace tessera
