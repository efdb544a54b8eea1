#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/page/html.h"
#include "results/page/plot.h"
#include "results/page/plot_frame.h"

namespace tessera {
namespace {

constexpr double kBarHeight = 13, kBarGap = 7, kAxisBelow = 38;

// The end of a stacked bar, or the longest of those side by side.
double length_of(const BarPlot::Bar& bar, bool is_stacked) {
  double length = 0;
  for (const double value : bar.values) {
    if (!std::isfinite(value)) continue;
    length = is_stacked ? length + value : std::max(length, value);
  }
  return length;
}

std::string shown_value(double value, const Axis& axis) {
  return readable(value / axis.per_unit) + (axis.unit.empty() ? "" : " " + axis.unit);
}

struct BarLayout {
  Area area;
  AxisRange range;
  double row_height = 0;  // a bar, or its bars side by side, with the gap below
};

std::string draw_bar(const BarPlot& plot, const BarPlot::Bar& bar, const BarLayout& layout, double y) {
  std::string out;
  double begin = 0;
  for (std::size_t part = 0; part < bar.values.size(); ++part) {
    const double value = bar.values[part];
    if (std::isfinite(value)) {
      const double from = layout.range.place(begin) * layout.area.width;
      const double to = layout.range.place(begin + value) * layout.area.width;
      out += fmt::format(
          R"(<rect class="bar s{}" x="{}" y="{}" width="{}" height="{}" data-v="{}"><title>{}</title></rect>)",
          part % kNumStyles, pixels(layout.area.left + std::min(from, to)), pixels(y), pixels(std::abs(to - from)),
          pixels(kBarHeight), exact(value),
          html_text(fmt::format("{}: {} {}", bar.label, plot.parts[part], shown_value(value, plot.value))));
      if (plot.is_stacked) begin += value;
    }
    if (!plot.is_stacked) y += kBarHeight;
  }
  return out;
}

std::string bar_plot_label(const BarPlot& plot) {
  return fmt::format("{}: {} by {}; parts: {}", plot.title, axis_title(plot.value), plot.label_title,
                     fmt::join(plot.parts, ", "));
}

}  // namespace

std::string svg(const BarPlot& plot) {
  std::vector<double> ends = {0};
  double widest = drawn_width(plot.label_title);
  for (const BarPlot::Bar& bar : plot.bars) {
    ends.push_back(length_of(bar, plot.is_stacked));
    widest = std::max(widest, drawn_width(bar.label));
  }
  BarLayout layout;
  Axis value = plot.value;
  value.from_zero = true;
  layout.range = fit_axis(value, ends);
  std::vector<LegendEntry> entries;
  for (std::size_t part = 0; part < plot.parts.size(); ++part) {
    entries.push_back({plot.parts[part], fmt::format("bar s{}", part % kNumStyles)});
  }
  double top = 22;
  const std::string legend = svg_legend(entries, top);
  const double label_width = std::min(widest, 0.38 * kPlotWidth);
  layout.row_height = kBarHeight * static_cast<double>(plot.is_stacked ? 1 : plot.parts.size()) + kBarGap;
  layout.area = {label_width + 16, top + 18, kPlotWidth - label_width - 16 - 60,
                 layout.row_height * static_cast<double>(plot.bars.size())};
  std::string out = open_svg(kPlotWidth, layout.area.bottom() + kAxisBelow, bar_plot_label(plot), R"(data-plot="bar")");
  out += svg_title(plot.title) + legend + svg_x_axis(value, layout.range, layout.area);
  out += R"(<g class="yt">)" + svg_text(layout.area.left - 6, layout.area.top - 5, "at", plot.label_title);
  double y = layout.area.top + kBarGap / 2;
  std::string bars;
  for (const BarPlot::Bar& bar : plot.bars) {
    const double middle = y + (layout.row_height - kBarGap) / 2;
    out += svg_text(layout.area.left - 6, middle + 4, "", cut_to_width(bar.label, label_width));
    bars += draw_bar(plot, bar, layout, y);
    const double length = length_of(bar, plot.is_stacked);
    const double end = layout.area.left + layout.range.place(length) * layout.area.width;
    bars += svg_text(end + 4, middle + 4, "value", length > 0 ? readable(length / value.per_unit) : "-");
    y += layout.row_height;
  }
  return out + "</g>" + bars + "</svg>";
}

}  // namespace tessera
