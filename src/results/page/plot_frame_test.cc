#include "results/page/plot_frame.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string labels(const Axis& axis, const std::vector<double>& values) {
  std::string text;
  for (const Tick& tick : fit_axis(axis, values).ticks) text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

TEST(Axis, HasRoundTicksAroundItsValues) {
  EXPECT_EQ(labels({}, {0.3, 5.7}), "0 1 2 3 4 5 6");
  EXPECT_EQ(labels({}, {1.12, 1.58}), "1.1 1.2 1.3 1.4 1.5 1.6");
  EXPECT_EQ(labels({}, {-3, 9}), "-4 -2 0 2 4 6 8 10");
  EXPECT_EQ(labels({}, {0, 14800}), "0 2,500 5,000 7,500 10,000 12,500 15,000");
  const AxisRange range = fit_axis({}, {0.3, 5.7});
  EXPECT_EQ(range.low, 0);
  EXPECT_EQ(range.high, 6);
  EXPECT_EQ(range.place(1.5), 0.25);
}

TEST(Axis, OfWholeNumbersHasNoTickBetweenThem) {
  EXPECT_EQ(labels({.is_whole = true}, {1, 3}), "1 2 3");
  EXPECT_EQ(labels({.is_whole = true}, {0, 14}), "0 5 10 15");  // not 2.5 apart
  EXPECT_EQ(labels({.is_whole = true}, {7}), "6 7 8");
}

TEST(Axis, MayEndWhereItsDataEnd) {
  const AxisRange range = fit_axis({.is_whole = true, .is_tight = true}, {3, 93});
  EXPECT_EQ(range.low, 3);
  EXPECT_EQ(range.high, 93);
  EXPECT_EQ(labels({.is_whole = true, .is_tight = true}, {3, 93}), "20 40 60 80");
}

TEST(Axis, ShowsItsUnit) {
  // 10,240 MB are 10 GiB; 30,720 MB are 30 GiB: the ticks are round GiB, and lie at their MB.
  const Axis axis = memory_axis("allocated", 30720);
  EXPECT_EQ(axis.unit, "GiB");
  EXPECT_EQ(labels(axis, {10240, 30720}), "0 5 10 15 20 25 30");
  EXPECT_EQ(fit_axis(axis, {10240, 30720}).ticks[1].value, 5120);
  EXPECT_EQ(memory_axis("allocated", 900).unit, "MiB");
  EXPECT_EQ(time_axis("time", 100).unit, "s");
  EXPECT_EQ(time_axis("time", 1000).unit, "min");
  EXPECT_EQ(labels(time_axis("time", 1000), {0, 1500}), "0 5 10 15 20 25");
  EXPECT_EQ(time_axis("time", 20000).unit, "h");
  EXPECT_EQ(number_axis("learning rate", "", 5e-5).unit, "1e-5");
  EXPECT_EQ(labels(number_axis("learning rate", "", 5e-5), {0, 5e-5}), "0 1 2 3 4 5");
  EXPECT_EQ(number_axis("loss", "", 2.5).unit, "");
  EXPECT_EQ(number_axis("bytes", "B", 3e6).unit, "1e6 B");
}

TEST(Axis, OfLogScaleHasWholePowers) {
  EXPECT_EQ(labels({.scale = AxisScale::kLog2}, {1, 16}), "1 2 4 8 16");
  EXPECT_EQ(labels({.scale = AxisScale::kLog2}, {2, 6}), "2 4 8");
  EXPECT_EQ(labels({.scale = AxisScale::kLog10}, {0.02, 300}), "0.01 0.1 1 10 100 1,000");
  const AxisRange range = fit_axis({.scale = AxisScale::kLog2}, {1, 16});
  EXPECT_DOUBLE_EQ(range.place(4), 0.5);
  // From 1 to 2^40 there are more powers than labels have room for.
  EXPECT_LE(fit_axis({.scale = AxisScale::kLog2}, {1, 1e12}).ticks.size(), 7u);
}

TEST(Axis, IsFineWithoutValuesOrWithStrangeOnes) {
  for (const std::vector<double>& values :
       {std::vector<double>{}, {kNan}, {std::numeric_limits<double>::infinity()}, {-1.0 * INFINITY, kNan}}) {
    for (const AxisScale scale : {AxisScale::kLinear, AxisScale::kLog2, AxisScale::kLog10}) {
      const AxisRange range = fit_axis({.scale = scale}, values);
      EXPECT_LT(range.low, range.high);
      EXPECT_GE(range.ticks.size(), 2u);
    }
  }
  EXPECT_EQ(labels({.scale = AxisScale::kLog2}, {0, -4, 8}), "8 16");  // only what a log axis can show
  for (const double constant : {0.0, 5.0, -2.0, 1e-9, 123456789.125}) {
    const AxisRange range = fit_axis({}, {constant, constant});
    EXPECT_LT(range.low, constant + 1e-12) << constant;
    EXPECT_GT(range.high, constant) << constant;
    EXPECT_LE(range.ticks.size(), 9u) << constant;
  }
  EXPECT_EQ(fit_axis({.from_zero = true}, {0}).low, 0);
}

}  // namespace
}  // namespace tessera
