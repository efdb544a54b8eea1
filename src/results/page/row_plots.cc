// Plots of rows with their labels at the left: bars and heat maps.
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

constexpr int kNumHeats = 7;  // h0 ... h6 of the style sheet
constexpr double kRowHeight = 20;

double median_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// In percent above the row's median.
std::vector<std::vector<double>> heats_of(const HeatMap& map) {
  std::vector<std::vector<double>> heats = map.values;
  for (std::vector<double>& row : heats) {
    const double median = median_of(row);
    for (double& value : row) value = median == 0 ? 0 : 100 * (value / median - 1);
  }
  return heats;
}

double hottest_of(const std::vector<std::vector<double>>& heats) {
  double most = 10;  // the noise of a few percent stays pale
  for (const std::vector<double>& row : heats) {
    for (const double heat : row) {
      if (std::isfinite(heat)) most = std::max(most, heat);
    }
  }
  return most;
}

// Seven boxes from none to the most.
std::string heat_legend(const HeatMap& map, double hottest, double y) {
  const std::string begin = fmt::format("above its {}'s median: 0 %", map.row_title);
  double x = 8;
  std::string out = R"(<g class="legend">)" + svg_text(x, y, "", begin);
  x += drawn_width(begin) + 6;
  for (int heat = 0; heat < kNumHeats; ++heat, x += 14) {
    out +=
        fmt::format(R"(<rect class="heat h{}" x="{}" y="{}" width="14" height="10"/>)", heat, pixels(x), pixels(y - 9));
  }
  return out + svg_text(x + 6, y, "", readable(std::round(10 * hottest) / 10) + " %") + "</g>";
}

std::string draw_cell(const HeatMap& map, std::size_t row, std::size_t column, int heat, const Area& cell) {
  const double value = map.values[row][column];
  std::string out =
      fmt::format(R"(<rect class="heat h{}" x="{}" y="{}" width="{}" height="{}" data-v="{}"><title>{}</title></rect>)",
                  heat, pixels(cell.left), pixels(cell.top), pixels(cell.width), pixels(cell.height), exact(value),
                  html_text(fmt::format("{}, {} {}: {} {}", map.rows[row], map.column_title, map.columns[column],
                                        readable(value), map.unit)));
  const std::string text = readable(value);
  if (drawn_width(text) + 2 < cell.width) {
    out +=
        svg_text(cell.left + cell.width / 2, cell.top + cell.height / 2 + 4, heat >= 4 ? "on_dark" : "on_light", text);
  }
  return out;
}

std::string column_labels(const HeatMap& map, const Area& area, double width) {
  std::string out = R"(<g class="xt">)";
  double free_from = 0;
  for (std::size_t column = 0; column < map.columns.size(); ++column) {
    const double centre = area.left + (static_cast<double>(column) + 0.5) * width;
    const double half = drawn_width(map.columns[column]) / 2;
    if (centre - half < free_from) continue;
    out += svg_text(centre, area.bottom() + 15, "", map.columns[column]);
    free_from = centre + half + 6;
  }
  return out + svg_text(area.left + area.width / 2, area.bottom() + 31, "at", map.column_title) + "</g>";
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
  std::string out = open_svg(layout.area.bottom() + kAxisBelow, bar_plot_label(plot), R"(data-plot="bar")");
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

std::string svg(const HeatMap& map) {
  const std::vector<std::vector<double>> heats = heats_of(map);
  const double hottest = hottest_of(heats);
  double widest = drawn_width(map.row_title);
  for (const std::string& row : map.rows) widest = std::max(widest, drawn_width(row));
  const double label_width = std::min(widest, 0.38 * kPlotWidth);
  const Area area{label_width + 16, 60, kPlotWidth - label_width - 16 - 8,
                  kRowHeight * static_cast<double>(map.rows.size())};
  const double width = area.width / static_cast<double>(std::max<std::size_t>(1, map.columns.size()));
  const std::string label =
      fmt::format("{}: {} ({}) by {} and {}", map.title, map.value_label, map.unit, map.row_title, map.column_title);
  std::string out = open_svg(area.bottom() + 38, label, R"(data-plot="heat")");
  out += svg_title(map.title) + heat_legend(map, hottest, 34) + R"(<g class="yt">)";
  out += svg_text(area.left - 6, area.top - 5, "at", map.row_title);
  std::string cells;
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const double y = area.top + kRowHeight * static_cast<double>(row);
    out += svg_text(area.left - 6, y + kRowHeight / 2 + 4, "", cut_to_width(map.rows[row], label_width));
    for (std::size_t column = 0; column < map.values[row].size() && column < map.columns.size(); ++column) {
      if (!std::isfinite(map.values[row][column])) continue;
      const Area cell{area.left + width * static_cast<double>(column) + 0.5, y + 0.5, width - 1, kRowHeight - 1};
      const int heat = std::clamp(static_cast<int>(kNumHeats * heats[row][column] / hottest), 0, kNumHeats - 1);
      cells += draw_cell(map, row, column, heat, cell);
    }
  }
  return out + "</g>" + cells + column_labels(map, area, width) + "</svg>";
}

}  // namespace tessera
