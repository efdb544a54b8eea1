// Plots as static SVG: lines, bars, heat maps. (no torch)
//
// Every plot has a title, axes with units, round tick labels and a legend; colours and dashes come from the page's
// style sheet (assets/page.css: s0 ... s15), so that one drawing serves light, dark and paper. Values show on hover:
// without script by <title>, with it (assets/page.js) by a crosshair that reads the exact numbers from the drawing.
// Names may be any text: they are escaped here.
#pragma once

#include <string>
#include <vector>

#include "results/page/plot_frame.h"

namespace tessera {

struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};

inline constexpr int kNumStyles = 16;  // 8 colours, solid and dashed

struct Series {
  std::string name;
  std::vector<Point> points;
  int style = 0;
  enum class Role { kData, kFaint, kReference } role = Role::kData;  // faint: one of many, not in the legend
};

// The space between two curves: lowest and highest of many ranks.
struct Band {
  std::string name;
  std::vector<Point> low, high;
  int style = 0;
};

struct Mark {  // a vertical line: the end of an epoch
  double x = 0;
  std::string label;
};

struct LinePlot {
  std::string title;
  Axis x, y;
  std::vector<Series> series;
  std::vector<Band> bands;
  std::vector<Mark> marks;
  std::size_t most_points = 300;  // per series
};

// Lying bars, one per label. Each has one value per part, stacked or side by side; nan: none.
struct BarPlot {
  struct Bar {
    std::string label;
    std::vector<double> values;
  };
  std::string title, label_title;  // what the bars are: "run", "rank"
  Axis value;
  std::vector<std::string> parts;
  std::vector<Bar> bars;
  bool is_stacked = false;
};

// Colours show how far a value is above its row's median: rows may be of different sizes, and what stands out within
// one is seen.
struct HeatMap {
  std::string title, row_title, column_title, value_label, unit;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;  // by row; nan: none
};

// At most about `most` points of those given, in their order: the first, the last, and of every stretch the lowest and
// the highest, so that no spike is lost. Points whose y is not finite mark a gap; a gap stays one point.
std::vector<Point> downsampled(const std::vector<Point>& points, std::size_t most);

std::string svg(const LinePlot& plot);
std::string svg(const BarPlot& plot);
std::string svg(const HeatMap& map);

}  // namespace tessera
