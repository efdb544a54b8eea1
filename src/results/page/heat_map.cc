#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "results/page/html.h"
#include "results/page/plot.h"
#include "results/page/plot_frame.h"

namespace tessera {
namespace {

constexpr int kNumHeats = 7;  // h0 ... h6 of the style sheet
constexpr double kRowHeight = 20;

// What the colours stand for: the values, or their distance from their row's median in percent.
using Heats = std::vector<std::vector<double>>;

double median_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Heats heats_of(const HeatMap& map) {
  Heats heats = map.values;
  if (!map.compares_within_rows) return heats;
  for (std::vector<double>& row : heats) {
    const double median = median_of(row);
    for (double& value : row) value = median == 0 ? 0 : 100 * (value / median - 1);
  }
  return heats;
}

struct HeatRange {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();

  HeatRange(const Heats& heats, bool are_percent) {
    if (are_percent) {  // the noise of a few percent stays pale
      low = 0;
      high = 10;
    }
    for (const std::vector<double>& row : heats) {
      for (const double heat : row) {
        if (!std::isfinite(heat)) continue;
        low = are_percent ? low : std::min(low, heat);
        high = std::max(high, heat);
      }
    }
  }
  int heat_of(double heat) const {
    if (!(high > low)) return 0;
    return std::clamp(static_cast<int>(kNumHeats * (heat - low) / (high - low)), 0, kNumHeats - 1);
  }
};

// Seven boxes from the lowest to the highest value.
std::string heat_legend(const HeatMap& map, const HeatRange& range, double y) {
  if (range.high < range.low) return R"(<g class="legend"></g>)";
  const std::string begin = map.compares_within_rows
                                ? fmt::format("above its {}'s median: {} %", map.row_title, readable(range.low))
                                : fmt::format("{}: {}", map.value_label, readable(range.low));
  const std::string end =
      readable(std::round(10 * range.high) / 10) + " " + (map.compares_within_rows ? "%" : map.unit);
  double x = 8;
  std::string out = R"(<g class="legend">)" + svg_text(x, y, "", begin);
  x += drawn_width(begin) + 6;
  for (int heat = 0; heat < kNumHeats; ++heat, x += 14) {
    out +=
        fmt::format(R"(<rect class="heat h{}" x="{}" y="{}" width="14" height="10"/>)", heat, pixels(x), pixels(y - 9));
  }
  return out + svg_text(x + 6, y, "", end) + "</g>";
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

std::string svg(const HeatMap& map) {
  const Heats heats = heats_of(map);
  const HeatRange range(heats, map.compares_within_rows);
  double widest = drawn_width(map.row_title);
  for (const std::string& row : map.rows) widest = std::max(widest, drawn_width(row));
  const double label_width = std::min(widest, 0.38 * kPlotWidth);
  const Area area{label_width + 16, 60, kPlotWidth - label_width - 16 - 8,
                  kRowHeight * static_cast<double>(map.rows.size())};
  const double width = area.width / static_cast<double>(std::max<std::size_t>(1, map.columns.size()));
  const std::string label =
      fmt::format("{}: {} ({}) by {} and {}", map.title, map.value_label, map.unit, map.row_title, map.column_title);
  std::string out = open_svg(kPlotWidth, area.bottom() + 38, label, R"(data-plot="heat")");
  out += svg_title(map.title) + heat_legend(map, range, 34) + R"(<g class="yt">)";
  out += svg_text(area.left - 6, area.top - 5, "at", map.row_title);
  std::string cells;
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const double y = area.top + kRowHeight * static_cast<double>(row);
    out += svg_text(area.left - 6, y + kRowHeight / 2 + 4, "", cut_to_width(map.rows[row], label_width));
    for (std::size_t column = 0; column < map.values[row].size() && column < map.columns.size(); ++column) {
      if (!std::isfinite(map.values[row][column])) continue;
      const Area cell{area.left + width * static_cast<double>(column) + 0.5, y + 0.5, width - 1, kRowHeight - 1};
      cells += draw_cell(map, row, column, range.heat_of(heats[row][column]), cell);
    }
  }
  return out + "</g>" + cells + column_labels(map, area, width) + "</svg>";
}

}  // namespace tessera
