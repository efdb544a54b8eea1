#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/page/html.h"
#include "report/page/plot.h"
#include "report/page/svg_frame.h"

namespace tessera {
namespace {

constexpr int kNumHeats = 7;  // h0 ... h6 of the style sheet
constexpr double kRowHeight = 20;

struct HeatRange {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();

  int heat_of(double value) const {
    if (high <= low) return 0;
    return std::min(kNumHeats - 1, static_cast<int>(kNumHeats * (value - low) / (high - low)));
  }
};

// Seven boxes from the lowest to the highest value.
std::string heat_legend(const HeatMap& map, const HeatRange& range, double y) {
  if (range.high < range.low) return R"(<g class="legend"></g>)";
  const std::string low = readable(range.low), high = fmt::format("{} {}", readable(range.high), map.unit);
  double x = 8;
  std::string out = R"(<g class="legend">)" + svg_text(x, y, "", map.value_label + ": " + low);
  x += text_width(map.value_label + ": " + low) + 6;
  for (int heat = 0; heat < kNumHeats; ++heat, x += 14) {
    out +=
        fmt::format(R"(<rect class="heat h{}" x="{}" y="{}" width="14" height="10"/>)", heat, pixels(x), pixels(y - 9));
  }
  return out + svg_text(x + 6, y, "", high) + "</g>";
}

std::string draw_cell(const HeatMap& map, const HeatRange& range, std::size_t row, std::size_t column,
                      const Area& cell) {
  const double value = map.values[row][column];
  if (!std::isfinite(value)) return "";
  const int heat = range.heat_of(value);
  std::string out =
      fmt::format(R"(<rect class="heat h{}" x="{}" y="{}" width="{}" height="{}" data-v="{}"><title>{}</title></rect>)",
                  heat, pixels(cell.left), pixels(cell.top), pixels(cell.width), pixels(cell.height), exact(value),
                  html_text(fmt::format("{}, {} {}: {} {}", map.rows[row], map.column_title, map.columns[column],
                                        readable(value), map.unit)));
  const std::string text = readable(value);
  if (text_width(text) + 4 < cell.width) {
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
    const double half = text_width(map.columns[column]) / 2;
    if (centre - half < free_from) continue;
    out += svg_text(centre, area.bottom() + 15, "", map.columns[column]);
    free_from = centre + half + 6;
  }
  return out + svg_text(area.left + area.width / 2, area.bottom() + 31, "at", map.column_title) + "</g>";
}

}  // namespace

std::string svg(const HeatMap& map) {
  HeatRange range;
  for (const std::vector<double>& row : map.values) {
    for (const double value : row) {
      if (!std::isfinite(value)) continue;
      range.low = std::min(range.low, value);
      range.high = std::max(range.high, value);
    }
  }
  double widest = text_width(map.row_title);
  for (const std::string& row : map.rows) widest = std::max(widest, text_width(row));
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
      cells += draw_cell(map, range, row, column,
                         {area.left + width * static_cast<double>(column) + 0.5, y + 0.5, width - 1, kRowHeight - 1});
    }
  }
  return out + "</g>" + cells + column_labels(map, area, width) + "</svg>";
}

}  // namespace tessera
