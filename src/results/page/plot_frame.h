// What all plots share: axes with round numbers, the drawing's size, title, legend and grid. (no torch)
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class AxisScale { kLinear, kLog2, kLog10 };

struct Tick {
  double value = 0;  // in the data's unit
  std::string label;
};

// What the plot's author says about an axis. Ticks are round in the shown unit: data in MB may be shown in GiB with
// per_unit 1024. `per_unit` is also how a power of ten leaves the labels: a learning rate in 1e-5.
struct Axis {
  std::string label = "", unit = "";  // "learning rate", "1e-5"; the unit may be empty
  AxisScale scale = AxisScale::kLinear;
  double per_unit = 1;
  bool is_whole = false;   // steps, GPUs: no tick between two whole numbers
  bool from_zero = false;  // bars, memory
  bool is_tight = false;   // the range ends where the data end, not at the next tick: good for steps and time
};

struct AxisRange {
  double low = 0, high = 1;
  std::vector<Tick> ticks;
  // 0 at `low`, 1 at `high`.
  double place(double value) const;
  AxisScale scale = AxisScale::kLinear;
};

// The range that shows all finite values (positive ones on a log axis), from tick to tick unless it is tight. No such
// value gives 0 to 1 (1 to 10 or 1 to 2 on a log axis); a single one gets room on both sides.
AxisRange fit_axis(const Axis& axis, const std::vector<double>& values);

// 'axis' with unit and per_unit chosen by the largest value: seconds as s, min or h; MB as MiB or GiB.
Axis time_axis(std::string label, double most_seconds);
Axis memory_axis(std::string label, double most_MB);
// Any other number: below 0.001 and from a million on the unit is a power of ten.
Axis number_axis(std::string label, std::string unit, double largest);

// Everything is drawn in these units; at 1:1 they are pixels. Narrow on purpose: on a phone the text stays readable.
inline constexpr double kPlotWidth = 420, kPlotHeight = 260;
inline constexpr double kTextSize = 11;

struct LegendEntry {
  std::string name;
  std::string classes;  // of the sample: "line s0", "bar s3", "line reference"
};

struct Area {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

double drawn_width(std::string_view text, double size = kTextSize);  // an estimate: the page chooses the font
// At most `width` wide, with an ellipsis where it was cut.
std::string cut_to_width(const std::string& text, double width, double size = kTextSize);
std::string axis_title(const Axis& axis);  // "time (min)"
std::string pixels(double value);          // at most one decimal

// <svg ...> with role, label and <title>-free head; `data` are further attributes, ready-made.
std::string open_svg(double height, const std::string& label, const std::string& data);
std::string svg_title(const std::string& title);
// Draws the legend from y = `top` on in as many rows as it needs, and moves `top` below it.
std::string svg_legend(const std::vector<LegendEntry>& entries, double& top);
std::string svg_text(double x, double y, const std::string& classes, const std::string& text);
// Grid lines and labels. The y axis stands at the area's left, the x axis below it; each with its title.
std::string svg_x_axis(const Axis& axis, const AxisRange& range, const Area& area);
std::string svg_y_axis(const Axis& axis, const AxisRange& range, const Area& area);
double y_axis_width(const AxisRange& range);  // room for its labels and title

}  // namespace tessera
