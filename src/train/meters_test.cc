#include "train/meters.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(LossMeter, MeanSinceTheLastLogAndOverTheRun) {
  LossMeter meter;
  EXPECT_EQ(meter.take_mean(), std::nullopt);
  EXPECT_EQ(meter.run_mean(), 0);
  meter.add(1);
  meter.add(2);
  EXPECT_EQ(meter.take_mean(), 1.5);
  meter.add(6);
  EXPECT_EQ(meter.run_mean(), 3);
  EXPECT_EQ(meter.take_mean(), 6);
  EXPECT_EQ(meter.take_mean(), std::nullopt);
}

TEST(LossMeter, TheRunsMeanSurvivesAResume) {
  LossMeter before;
  before.add(1);
  before.add(2);
  LossMeter after(before.total(), before.num_updates());
  after.add(6);
  EXPECT_EQ(after.run_mean(), 3);
  EXPECT_EQ(after.take_mean(), 6);
}

TEST(SpeedMeter, StepsBetweenLogsOverSecondsBetweenLogs) {
  SpeedMeter meter(32, 100.0);
  EXPECT_EQ(meter.summary(), LogRecord());
  EXPECT_EQ(meter.at_log(10, 105.0), (LogRecord{{"train/steps_per_second", 2.0}, {"train/samples_per_second", 64.0}}));
  EXPECT_EQ(meter.at_log(20, 106.0).number("train/steps_per_second"), 10.0);
  // 20 steps / 6 s, not the mean of 2 and 10.
  EXPECT_DOUBLE_EQ(*meter.summary().number("train/steps_per_second_mean"), 20.0 / 6);
  EXPECT_DOUBLE_EQ(*meter.summary().number("train/samples_per_second_mean"), 32 * 20.0 / 6);
}

TEST(SpeedMeter, AnIntervalWithoutStepsOrTimeCountsNothing) {
  SpeedMeter meter(1, 0.0);
  meter.resume_at(50, 10.0);
  EXPECT_EQ(meter.at_log(50, 11.0), LogRecord());
  EXPECT_EQ(meter.at_log(52, 10.0), LogRecord());
  EXPECT_EQ(meter.at_log(52, 11.0).number("train/steps_per_second"), 2.0);
}

}  // namespace
}  // namespace tessera
