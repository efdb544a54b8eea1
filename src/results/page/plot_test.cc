#include "results/page/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

namespace tessera {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

int count(const std::string& text, const std::string& part) {
  int number = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++number;
  return number;
}

LinePlot loss_plot() {
  LinePlot plot;
  plot.title = "Loss";
  plot.x = {.label = "step", .is_whole = true};
  plot.y = {.label = "loss", .unit = "nats"};
  plot.series = {{"train", {{10, 1.2345}, {20, 1.25}, {30, 0.0625}}, 0}, {"eval", {{30, 2}}, 1}};
  return plot;
}

TEST(LinePlot, HoldsItsDataExactly) {
  const std::string drawn = svg(loss_plot());
  EXPECT_NE(drawn.find(R"(<polyline points="10,1.2345 20,1.25 30,0.0625"/>)"), std::string::npos) << drawn;
  EXPECT_NE(drawn.find(R"(<polyline class="lone" points="30,2 30,2"/>)"), std::string::npos) << drawn;
  // The matrix maps the range to the area: by hand from the numbers that it was given.
  std::smatch a, m;
  ASSERT_TRUE(std::regex_search(drawn, a, std::regex(R"re(data-a="(\S+) (\S+) (\S+) (\S+)")re")));
  ASSERT_TRUE(std::regex_search(drawn, m, std::regex(R"re(matrix\((\S+) 0 0 (\S+) (\S+) (\S+)\))re")));
  const double left = std::stod(a[1]), top = std::stod(a[2]), width = std::stod(a[3]), height = std::stod(a[4]);
  EXPECT_NEAR(std::stod(m[1]) * 10 + std::stod(m[3]), left, 1e-3);  // the axis is from 10 to 30
  EXPECT_NEAR(std::stod(m[1]) * 30 + std::stod(m[3]), left + width, 1e-3);
  EXPECT_NEAR(std::stod(m[2]) * 0 + std::stod(m[4]), top + height, 1e-3);  // and from 0 to 2
  EXPECT_NEAR(std::stod(m[2]) * 2 + std::stod(m[4]), top, 1e-3);
}

TEST(LinePlot, HasTitleAxesUnitsAndLegend) {
  const std::string drawn = svg(loss_plot());
  EXPECT_NE(drawn.find(R"(role="img" aria-label="Loss: loss (nats) against step; lines: train, eval")"),
            std::string::npos);
  EXPECT_NE(drawn.find(R"(class="title">Loss</text>)"), std::string::npos);
  EXPECT_NE(drawn.find(">loss (nats)</text>"), std::string::npos);
  EXPECT_NE(drawn.find(">step</text>"), std::string::npos);
  const std::string legend = drawn.substr(drawn.find(R"(<g class="legend">)"), 600);
  EXPECT_NE(legend.find(">train</text>"), std::string::npos);
  EXPECT_NE(legend.find(">eval</text>"), std::string::npos);
}

TEST(LinePlot, LeavesGapsWhereThereIsNoValue) {
  LinePlot plot = loss_plot();
  plot.series = {{"train", {{1, 1}, {2, 2}, {3, kNone}, {4, 4}, {5, 5}}, 0}};
  const std::string drawn = svg(plot);
  EXPECT_NE(drawn.find(R"(points="1,1 2,2"/><polyline points="4,4 5,5")"), std::string::npos) << drawn;
  EXPECT_EQ(count(drawn, "nan"), 0);
}

TEST(LinePlot, OnALogAxisCarriesItsValues) {
  LinePlot plot = loss_plot();
  plot.x.scale = AxisScale::kLog2;
  plot.series = {{"zero2", {{0, 3}, {1, 10}, {2, 19.5}, {8, 70}}, 0}};  // 0 has no place on it
  const std::string drawn = svg(plot);
  EXPECT_NE(drawn.find(R"(data-v="1,10 2,19.5 8,70")"), std::string::npos) << drawn;
}

TEST(LinePlot, OfVerySmallValuesIsDrawnInPixels) {
  LinePlot plot = loss_plot();
  plot.y = number_axis("learning rate", "", 5e-5);
  plot.series = {{"learning rate", {{1, 5e-5}, {2, 4.838709677419355e-05}, {3, 0}}, 0}};
  const std::string drawn = svg(plot);
  EXPECT_NE(drawn.find(R"(data-v="1,5e-05 2,4.838709677419355e-05 3,0")"), std::string::npos) << drawn;
  EXPECT_EQ(count(drawn, "matrix"), 0);
}

TEST(LinePlot, IsDrawnWhateverTheData) {
  LinePlot plot = loss_plot();
  for (const std::vector<Point>& points :
       {std::vector<Point>{}, {{1, kNone}}, {{1, 5}}, {{1, 5}, {2, 5}}, {{1, 1e9}, {2, 1e9 + 1}}}) {
    plot.series = {{"x", points, 0}};
    const std::string drawn = svg(plot);
    EXPECT_TRUE(drawn.starts_with("<svg ")) << drawn;
    EXPECT_TRUE(drawn.ends_with("</svg>")) << drawn;
    EXPECT_EQ(count(drawn, "nan"), 0) << drawn;
    EXPECT_EQ(count(drawn, "inf"), 0) << drawn;
  }
  // Too fine for a browser's float32 in a matrix: pixels, and the values beside them.
  EXPECT_NE(svg(plot).find(R"(data-v="1,1000000000 2,1000000001")"), std::string::npos) << svg(plot);
}

TEST(Plots, EscapeNames) {
  const std::string name = "<script>alert(\"1\")</script>";
  LinePlot line = loss_plot();
  line.title = line.series[0].name = line.x.label = line.y.unit = name;
  line.bands = {{name, {{1, 1}, {2, 1}}, {{1, 2}, {2, 2}}, 0}};
  line.marks = {{15, name}};
  BarPlot bars;
  bars.title = bars.label_title = bars.value.label = name;
  bars.parts = {name};
  bars.bars = {{name, {3}}};
  HeatMap map{name, name, name, name, name, {name}, {name}, {{1}}};
  for (const std::string& drawn : {svg(line), svg(bars), svg(map)}) {
    EXPECT_EQ(count(drawn, "<script"), 0);
    EXPECT_EQ(count(drawn, "(\"1\")"), 0);
    EXPECT_GT(count(drawn, "&lt;script"), 3);
  }
}

TEST(BarPlot, StacksOrSetsSideBySide) {
  BarPlot plot;
  plot.title = "Memory";
  plot.label_title = "run";
  plot.value = {.label = "memory", .unit = "GiB", .per_unit = 1024};
  plot.parts = {"weights", "gradients"};
  plot.bars = {{"a", {1024, 3072}}, {"b", {2048, kNone}}};
  plot.is_stacked = true;
  const std::string stacked = svg(plot);
  EXPECT_NE(stacked.find(R"(data-v="3072"><title>a: gradients 3 GiB</title>)"), std::string::npos) << stacked;
  EXPECT_EQ(count(stacked, "<rect class=\"bar s"), 2 + 3);  // legend, and one per value
  std::smatch first, second;
  ASSERT_TRUE(std::regex_search(stacked, first,
                                std::regex(R"re(x="(\S+)" y="\S+" width="(\S+)" height="13" data-v="1024")re")));
  ASSERT_TRUE(std::regex_search(stacked, second,
                                std::regex(R"re(x="(\S+)" y="\S+" width="(\S+)" height="13" data-v="3072")re")));
  EXPECT_NEAR(std::stod(first[1]) + std::stod(first[2]), std::stod(second[1]), 0.11);  // begins where the other ends
  EXPECT_NEAR(3 * std::stod(first[2]), std::stod(second[2]), 0.3);
  plot.is_stacked = false;
  const std::string beside = svg(plot);
  ASSERT_TRUE(
      std::regex_search(beside, first, std::regex(R"re(x="(\S+)" y="\S+" width="(\S+)" height="13" data-v="1024")re")));
  ASSERT_TRUE(std::regex_search(beside, second,
                                std::regex(R"re(x="(\S+)" y="\S+" width="(\S+)" height="13" data-v="3072")re")));
  EXPECT_EQ(first[1], second[1]);
}

TEST(HeatMap, IsDarkerWhereItIsMore) {
  const HeatMap map{"Step time", "run", "rank", "step time", "ms", {"a"}, {"0", "1", "2"}, {{80, 10, kNone}}};
  const std::string drawn = svg(map);
  EXPECT_NE(drawn.find(R"re(class="heat h0" x=")re"), std::string::npos);
  EXPECT_NE(drawn.find(R"(data-v="10"><title>a, rank 1: 10 ms</title>)"), std::string::npos) << drawn;
  EXPECT_EQ(count(drawn, "data-v"), 2);
}

TEST(HeatMap, ComparesWithinRows) {
  HeatMap map{"Step time", "run", "rank", "step time", "ms", {"small", "large"}, {"0", "1", "2"}, {}};
  map.values = {{100, 100, 114}, {3000, 3000, 3030}};  // 14 % and 1 % above the row's median
  const std::string drawn = svg(map);
  EXPECT_TRUE(std::regex_search(drawn, std::regex(R"re(heat h6" [^>]*data-v="114")re"))) << drawn;
  EXPECT_TRUE(std::regex_search(drawn, std::regex(R"re(heat h0" [^>]*data-v="3030")re"))) << drawn;
  EXPECT_NE(drawn.find(">above its run&#39;s median: 0 %</text>"), std::string::npos) << drawn;
  EXPECT_NE(drawn.find(">14 %</text>"), std::string::npos) << drawn;
}

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
  for (int i = 400; i < 600; ++i) points[i].y = kNone;
  const std::vector<Point> kept = downsampled(points, 50);
  const auto num_gaps = std::count_if(kept.begin(), kept.end(), [](const Point& p) { return std::isnan(p.y); });
  EXPECT_EQ(num_gaps, 1);
  EXPECT_LT(kept.size(), 60u);
}

}  // namespace
}  // namespace tessera
