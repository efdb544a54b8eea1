// What all plots share: the drawing's size, title, legend, axes and grid. (no torch)
#pragma once

#include <string>
#include <vector>

#include "results/page/axis.h"

namespace tessera {

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
std::string open_svg(double width, double height, const std::string& label, const std::string& data);
std::string svg_title(const std::string& title);
// Draws the legend from y = `top` on in as many rows as it needs, and moves `top` below it.
std::string svg_legend(const std::vector<LegendEntry>& entries, double& top, double left = 8);
std::string svg_text(double x, double y, const std::string& classes, const std::string& text);
// Grid lines and labels. The y axis stands at the area's left, the x axis below it; each with its title.
std::string svg_x_axis(const Axis& axis, const AxisRange& range, const Area& area);
std::string svg_y_axis(const Axis& axis, const AxisRange& range, const Area& area);
double y_axis_width(const AxisRange& range);  // room for its labels and title

}  // namespace tessera
