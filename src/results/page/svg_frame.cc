#include "results/page/svg_frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "results/page/html.h"

namespace tessera {
namespace {

constexpr double kLegendRow = 16, kSample = 18;
constexpr double kLabelGap = 8;  // between two labels of the x axis

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

std::string legend_sample(const LegendEntry& entry, double x, double y) {
  if (entry.classes.starts_with("line")) {
    return fmt::format(R"(<g class="{}"><path d="M{} {}h{}"/></g>)", entry.classes, pixels(x), pixels(y - 4), kSample);
  }
  return fmt::format(R"(<rect class="{}" x="{}" y="{}" width="10" height="10"/>)", entry.classes, pixels(x + 4),
                     pixels(y - 9));
}

}  // namespace

double drawn_width(std::string_view text, double size) {
  const auto num_characters = std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); });
  return 0.6 * size * static_cast<double>(num_characters);
}

std::string cut_to_width(const std::string& text, double width, double size) {
  if (drawn_width(text, size) <= width) return text;
  std::string cut = text;
  while (!cut.empty() && drawn_width(cut, size) > width - size) {
    while (!cut.empty() && continues_character(cut.back())) cut.pop_back();
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

std::string open_svg(double width, double height, const std::string& label, const std::string& data) {
  return fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}"{}{}>)", pixels(width), pixels(height),
                     html_text(label), data.empty() ? "" : " ", data);
}

std::string svg_title(const std::string& title) {
  return svg_text(8, 16, "title", cut_to_width(title, kPlotWidth - 16, 14));
}

std::string svg_legend(const std::vector<LegendEntry>& entries, double& top, double left) {
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

}  // namespace tessera
