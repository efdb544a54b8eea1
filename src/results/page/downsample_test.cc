#include "results/page/downsample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

std::vector<Point> noisy(int count) {
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) points.push_back({double(i), std::sin(i * 0.7)});
  return points;
}

TEST(Downsample, KeepsEndsAndSpikes) {
  std::vector<Point> points = noisy(10000);
  points[4321].y = 50;
  points[8765].y = -60;
  const std::vector<Point> kept = downsampled(points, 200);
  EXPECT_LE(kept.size(), 200u);
  EXPECT_GE(kept.size(), 150u);
  EXPECT_EQ(kept.front(), points.front());
  EXPECT_EQ(kept.back(), points.back());
  EXPECT_NE(std::find(kept.begin(), kept.end(), points[4321]), kept.end());
  EXPECT_NE(std::find(kept.begin(), kept.end(), points[8765]), kept.end());
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(), [](const Point& a, const Point& b) { return a.x < b.x; }));
}

TEST(Downsample, KeepsFewPointsAsTheyAre) {
  const std::vector<Point> points = noisy(100);
  EXPECT_EQ(downsampled(points, 100), points);
  EXPECT_TRUE(downsampled({}, 100).empty());
  EXPECT_EQ(downsampled({{1, 2}}, 100).size(), 1u);
}

TEST(Downsample, KeepsAGapOnce) {
  std::vector<Point> points = noisy(1000);
  for (int i = 400; i < 600; ++i) points[i].y = kGap;
  const std::vector<Point> kept = downsampled(points, 50);
  const auto num_gaps = std::count_if(kept.begin(), kept.end(), [](const Point& p) { return std::isnan(p.y); });
  EXPECT_EQ(num_gaps, 1);
  EXPECT_LT(kept.size(), 60u);
}

}  // namespace
}  // namespace tessera
