#include "results/page/plot_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text.h"
#include "listeners/console_text.h"
#include "results/page/html.h"

namespace tessera {
namespace {

constexpr double kLegendRow = 16, kSample = 18;
constexpr int kMostTicks = 6;
constexpr double kLabelGap = 8;  // between two labels of the x axis

std::string legend_sample(const LegendEntry& entry, double x, double y) {
  if (entry.classes.starts_with("line")) {
    return fmt::format(R"(<g class="{}"><path d="M{} {}h{}"/></g>)", entry.classes, pixels(x), pixels(y - 4), kSample);
  }
  return fmt::format(R"(<rect class="{}" x="{}" y="{}" width="10" height="10"/>)", entry.classes, pixels(x + 4),
                     pixels(y - 9));
}

// 1, 2, 2.5 or 5 times a power of ten: the smallest that is not below `least`.
double round_step(double least, bool is_whole) {
  if (is_whole) least = std::max(least, 1.0);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    const double step = factor * power;
    if (step < least * (1 - 1e-9)) continue;
    if (is_whole && step != std::round(step)) continue;
    return is_whole ? std::max(1.0, step) : step;
  }
  return 10 * power;
}

int decimals_of(double step) {
  for (int decimals = 0; decimals < 12; ++decimals) {
    const double scaled = step * std::pow(10, decimals);
    if (std::abs(scaled - std::round(scaled)) < 1e-6 * scaled) return decimals;
  }
  return 12;
}

std::string tick_label(double value, int decimals) {
  if (decimals > 6) return fmt::format("{:.3g}", value);
  if (decimals > 0) return fmt::format("{:.{}f}", value, decimals);
  if (std::abs(value) >= 1e15) return fmt::format("{:.3g}", value);
  return grouped(std::llround(value));
}

// On a log axis: whole powers while there are few; every second, third, ... otherwise.
AxisRange fit_log_axis(const Axis& axis, double low, double high) {
  const double base = axis.scale == AxisScale::kLog2 ? 2 : 10;
  const auto power_of = [&](double value) { return std::log(value / axis.per_unit) / std::log(base); };
  int first = static_cast<int>(std::floor(power_of(low) + 1e-9));
  int last = static_cast<int>(std::ceil(power_of(high) - 1e-9));
  if (last == first) ++last;
  AxisRange range;
  range.scale = axis.scale;
  range.low = std::pow(base, first) * axis.per_unit;
  range.high = std::pow(base, last) * axis.per_unit;
  const int stride = std::max(1, (last - first + kMostTicks - 1) / kMostTicks);
  for (int power = first; power <= last; power += stride) {
    const double shown = std::pow(base, power);
    const std::string label =
        shown >= 1e6 || shown < 1e-3 ? fmt::format("{:.4g}", shown) : tick_label(shown, decimals_of(shown));
    range.ticks.push_back({shown * axis.per_unit, label});
  }
  return range;
}

// Where all values are the same there is room on both sides.
void widen(const Axis& axis, double& low, double& high) {
  if (high - low > 1e-12 * std::max(std::abs(low), std::abs(high))) return;
  const double room = axis.is_whole || low == 0 ? 1 : 0.1 * std::abs(low);
  const bool stays_positive = low >= 0 && (axis.is_whole || axis.from_zero);
  low = stays_positive ? std::max(0.0, low - room) : low - room;
  high += room;
}

AxisRange fit_linear_axis(const Axis& axis, double low, double high) {
  low /= axis.per_unit;
  high /= axis.per_unit;
  if (axis.from_zero) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  widen(axis, low, high);
  const double step = round_step((high - low) / kMostTicks, axis.is_whole);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  AxisRange range;
  range.low = first * step * axis.per_unit;
  range.high = last * step * axis.per_unit;
  const int decimals = decimals_of(step);
  if (axis.is_tight) {
    range.low = low * axis.per_unit;
    range.high = high * axis.per_unit;
  }
  const auto num_ticks = static_cast<int>(std::min(last - first + 1, 1000.0));  // huge values have no room for one more
  for (int n = 0; n < num_ticks; ++n) {
    const double i = first + n;
    const double value = i * step * axis.per_unit, room = 1e-9 * step * axis.per_unit;
    if (value < range.low - room || value > range.high + room) continue;
    range.ticks.push_back({value, tick_label(i * step, decimals)});
  }
  return range;
}

}  // namespace

double drawn_width(std::string_view text, double size) {
  return 0.6 * size * static_cast<double>(num_characters(text));
}

std::string cut_to_width(const std::string& text, double width, double size) {
  if (drawn_width(text, size) <= width) return text;
  std::string cut = text;
  while (!cut.empty() && drawn_width(cut, size) > width - size) {
    while (!cut.empty() && !begins_character(cut.back())) cut.pop_back();
    if (!cut.empty()) cut.pop_back();
  }
  return cut + "\u2026";
}

std::string axis_title(const Axis& axis) {
  return axis.unit.empty() ? axis.label : fmt::format("{} ({})", axis.label, axis.unit);
}

std::string pixels(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string open_svg(double height, const std::string& label, const std::string& data) {
  return fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}" {}>)", pixels(kPlotWidth), pixels(height),
                     html_text(label), data);
}

std::string svg_title(const std::string& title) {
  return svg_text(8, 16, "title", cut_to_width(title, kPlotWidth - 16, 14));
}

std::string svg_legend(const std::vector<LegendEntry>& entries, double& top) {
  constexpr double left = 8;
  std::string out = R"(<g class="legend">)";
  double x = left, y = top + 12;
  for (const LegendEntry& entry : entries) {
    const std::string name = cut_to_width(entry.name, kPlotWidth - left - kSample - 16);
    const double width = kSample + 5 + drawn_width(name) + 12;
    if (x > left && x + width > kPlotWidth) {
      x = left;
      y += kLegendRow;
    }
    out += legend_sample(entry, x, y) + svg_text(x + kSample + 5, y, "", name);
    x += width;
  }
  top = entries.empty() ? top : y + 8;
  return out + "</g>";
}

std::string svg_text(double x, double y, const std::string& classes, const std::string& text) {
  return fmt::format(R"(<text x="{}" y="{}"{}>{}</text>)", pixels(x), pixels(y),
                     classes.empty() ? "" : fmt::format(R"( class="{}")", classes), html_text(text));
}

std::string svg_x_axis(const Axis& axis, const AxisRange& range, const Area& area) {
  std::string lines, labels;
  double free_from = 0;  // labels that would touch the one before them are left out
  for (const Tick& tick : range.ticks) {
    const double x = area.left + range.place(tick.value) * area.width;
    lines += fmt::format("M{} {}v{}", pixels(x), pixels(area.top), pixels(area.height));
    const double half = drawn_width(tick.label) / 2, centre = std::min(x, kPlotWidth - half - 1);
    if (centre - half < free_from) continue;
    labels += svg_text(centre, area.bottom() + 15, "", tick.label);
    free_from = centre + half + kLabelGap;
  }
  return fmt::format(R"(<path class="grid" d="{}"/><g class="xt">{}{}</g>)", lines, labels,
                     svg_text(area.left + area.width / 2, area.bottom() + 31, "at", axis_title(axis)));
}

std::string svg_y_axis(const Axis& axis, const AxisRange& range, const Area& area) {
  std::string lines, labels;
  for (const Tick& tick : range.ticks) {
    const double y = area.bottom() - range.place(tick.value) * area.height;
    lines += fmt::format("M{} {}h{}", pixels(area.left), pixels(y), pixels(area.width));
    labels += svg_text(area.left - 6, y + 4, "", tick.label);
  }
  const std::string title = cut_to_width(axis_title(axis), area.height + 30);
  return fmt::format(
      R"svg(<path class="grid" d="{}"/><g class="yt">{}<text class="at" transform="translate(14 {})rotate(-90)">{}</text></g>)svg",
      lines, labels, pixels(area.top + area.height / 2), html_text(title));
}

double y_axis_width(const AxisRange& range) {
  double widest = 0;
  for (const Tick& tick : range.ticks) widest = std::max(widest, drawn_width(tick.label));
  return widest + 28;
}

double AxisRange::place(double value) const {
  if (scale == AxisScale::kLinear) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

AxisRange fit_axis(const Axis& axis, const std::vector<double>& values) {
  const bool is_log = axis.scale != AxisScale::kLinear;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || (is_log && value <= 0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) {
    low = is_log ? axis.per_unit : 0;
    high = axis.per_unit;
  }
  return is_log ? fit_log_axis(axis, low, high) : fit_linear_axis(axis, low, high);
}

Axis time_axis(std::string label, double most_seconds) {
  Axis axis{.label = std::move(label), .unit = "s"};
  if (most_seconds > 3 * 3600) {
    axis.unit = "h";
    axis.per_unit = 3600;
  } else if (most_seconds > 3 * 60) {
    axis.unit = "min";
    axis.per_unit = 60;
  }
  return axis;
}

Axis memory_axis(std::string label, double most_MB) {
  const bool in_GiB = most_MB >= 2 * 1024;
  return {
      .label = std::move(label), .unit = in_GiB ? "GiB" : "MiB", .per_unit = in_GiB ? 1024.0 : 1.0, .from_zero = true};
}

Axis number_axis(std::string label, std::string unit, double largest) {
  Axis axis{.label = std::move(label), .unit = std::move(unit)};
  const double size = std::abs(largest);
  if (!std::isfinite(size) || size == 0 || (size >= 1e-3 && size < 1e6)) return axis;
  const int power = static_cast<int>(std::floor(std::log10(size) + 1e-9));
  axis.per_unit = std::pow(10, power);
  const std::string factor = fmt::format("1e{}", power);
  axis.unit = axis.unit.empty() ? factor : factor + " " + axis.unit;
  return axis;
}

}  // namespace tessera
