#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "results/page/html.h"
#include "results/page/plot.h"
#include "results/page/plot_frame.h"

namespace tessera {
namespace {

constexpr double kLeastArea = 120, kBelowArea = 38;
constexpr std::size_t kMostDots = 30;  // a curve of few points shows each of them
// Browsers compute in float32: beyond this ratio of values to their range it would show. And Chromium leaves out
// drawings that are very small before their matrix makes them large (seen with learning rates of 1e-5).
constexpr double kLargestRatio = 1e4, kLeastRange = 0.1, kLargestRange = 1e6;

std::string style_class(int style) {
  return fmt::format("s{}", style % kNumStyles);
}

std::string series_classes(const Series& series) {
  switch (series.role) {
    case Series::Role::kFaint:
      return "line faint";
    case Series::Role::kReference:
      return "line reference";
    default:
      return "line " + style_class(series.style);
  }
}

// Where points are drawn. On linear axes the drawing holds the data themselves and a matrix places them: half the
// bytes, and the script reads exact values from it. Otherwise it holds pixels, and the values stand in data-v.
class Placing {
 public:
  Placing(const AxisRange& x, const AxisRange& y, const Area& area) : x_(x), y_(y), area_(area) {
    const auto is_coarse = [](const AxisRange& range) {
      const double length = range.high - range.low;
      return range.scale == AxisScale::kLinear && length >= kLeastRange && length <= kLargestRange &&
             std::max(std::abs(range.low), std::abs(range.high)) < kLargestRatio * length;
    };
    holds_data_ = is_coarse(x) && is_coarse(y);
  }

  bool holds_data() const { return holds_data_; }
  std::string transform() const {
    if (!holds_data_) return "";
    const double a = area_.width / (x_.high - x_.low), d = -area_.height / (y_.high - y_.low);
    return fmt::format(R"svg( transform="matrix({:.10g} 0 0 {:.10g} {:.10g} {:.10g})")svg", a, d,
                       area_.left - a * x_.low, area_.bottom() - d * y_.low);
  }
  void write(std::string& out, const Point& point, char between) const {
    if (holds_data_) {
      fmt::format_to(std::back_inserter(out), "{}{}{}", point.x, between, point.y);
    } else {
      out += pixel_x(point.x) + between + pixels(area_.bottom() - y_.place(point.y) * area_.height);
    }
  }
  std::string pixel_x(double x) const { return pixels(area_.left + x_.place(x) * area_.width); }

 private:
  const AxisRange &x_, &y_;
  const Area& area_;
  bool holds_data_ = false;
};

bool is_drawable(const Point& point, const LinePlot& plot) {
  if (!std::isfinite(point.x) || !std::isfinite(point.y)) return false;
  return (plot.x.scale == AxisScale::kLinear || point.x > 0) && (plot.y.scale == AxisScale::kLinear || point.y > 0);
}

void write_stretch(std::string& out, const std::vector<Point>& stretch, const Placing& placing) {
  if (stretch.empty()) return;
  const bool is_lone = stretch.size() == 1;
  out += is_lone ? R"(<polyline class="lone" points=")" : R"(<polyline points=")";
  for (std::size_t i = 0; i < stretch.size(); ++i) {
    if (i > 0) out += ' ';
    placing.write(out, stretch[i], ',');
  }
  if (is_lone) {  // a line of no length with round ends is a dot
    out += ' ';
    placing.write(out, stretch[0], ',');
  }
  out += "\"/>";
}

std::string dots(const std::vector<Point>& points, const LinePlot& plot, const Placing& placing) {
  std::string out = R"(<path class="dots" d=")";
  for (const Point& point : points) {
    if (!is_drawable(point, plot)) continue;
    out += 'M';
    placing.write(out, point, ' ');
    out += "h0";
  }
  return out + "\"/>";
}

std::string values_of(const std::vector<Point>& points, const LinePlot& plot) {
  std::string out;
  for (const Point& point : points) {
    if (is_drawable(point, plot)) out += fmt::format("{}{},{}", out.empty() ? "" : " ", point.x, point.y);
  }
  return out;
}

std::string draw_series(const Series& series, const LinePlot& plot, const Placing& placing) {
  const std::vector<Point> points = downsampled(series.points, plot.most_points);
  std::string out = fmt::format(R"(<g class="{}" data-name="{}")", series_classes(series), html_text(series.name));
  if (!placing.holds_data()) out += fmt::format(R"( data-v="{}")", values_of(points, plot));
  out += fmt::format("><title>{}</title>", html_text(series.name));
  std::vector<Point> stretch;
  for (const Point& point : points) {
    if (is_drawable(point, plot)) {
      stretch.push_back(point);
      continue;
    }
    write_stretch(out, stretch, placing);
    stretch.clear();
  }
  write_stretch(out, stretch, placing);
  if (series.role == Series::Role::kData && points.size() > 1 && series.points.size() <= kMostDots) {
    out += dots(points, plot, placing);
  }
  return out + "</g>";
}

std::string draw_band(const Band& band, std::size_t most, const Placing& placing) {
  std::vector<Point> low = downsampled(band.low, most);
  std::vector<Point> high = downsampled(band.high, most);
  std::reverse(low.begin(), low.end());
  std::string out = fmt::format(R"(<g class="band {}"><title>{}</title><polygon points=")", style_class(band.style),
                                html_text(band.name));
  for (const auto* edge : {&high, &low}) {
    for (const Point& point : *edge) {
      placing.write(out, point, ',');
      out += ' ';
    }
  }
  return out + "\"/></g>";
}

std::string draw_marks(const LinePlot& plot, const AxisRange& x, const Area& area, const Placing& placing) {
  std::string out;
  for (const Mark& mark : plot.marks) {
    if (!(mark.x >= x.low && mark.x <= x.high)) continue;
    out += fmt::format(R"(<path class="mark" d="M{} {}v{}"><title>{}</title></path>)", placing.pixel_x(mark.x),
                       pixels(area.top), pixels(area.height), html_text(mark.label));
  }
  return out;
}

// What the script needs to turn a place on the screen into a number: low, high, data per shown unit, log or not.
std::string axis_data(const char* name, const Axis& axis, const AxisRange& range) {
  return fmt::format(R"(data-{0}="{1} {2} {3} {4}" data-{0}n="{5}" data-{0}u="{6}")", name, range.low, range.high,
                     axis.per_unit, range.scale == AxisScale::kLinear ? 0 : 1, html_text(axis.label),
                     html_text(axis.unit));
}

std::string line_plot_label(const LinePlot& plot) {
  std::string names;
  for (const Series& series : plot.series) {
    if (series.role == Series::Role::kFaint) continue;
    names += (names.empty() ? "" : ", ") + series.name;
  }
  return fmt::format("{}: {} against {}; lines: {}", plot.title, axis_title(plot.y), axis_title(plot.x), names);
}

std::vector<LegendEntry> legend_of(const LinePlot& plot) {
  std::vector<LegendEntry> entries;
  for (const Series& series : plot.series) {
    if (series.role != Series::Role::kFaint) entries.push_back({series.name, series_classes(series)});
  }
  for (const Band& band : plot.bands) entries.push_back({band.name, "bar soft " + style_class(band.style)});
  if (!plot.marks.empty()) entries.push_back({"end of an epoch", "line mark"});
  return entries;
}

void add_point(std::vector<Point>& kept, const Point& point) {
  const bool is_gap = !std::isfinite(point.y);
  if (is_gap && !kept.empty() && !std::isfinite(kept.back().y)) return;
  kept.push_back(point);
}

// The lowest and the highest of [begin, end), and a gap where there is one, in their order.
void add_extremes(std::vector<Point>& kept, const std::vector<Point>& points, std::size_t begin, std::size_t end) {
  std::size_t low = end, high = end, gap = end;
  for (std::size_t i = begin; i < end; ++i) {
    const double y = points[i].y;
    if (!std::isfinite(y)) {
      gap = i;
      continue;
    }
    if (low == end || y < points[low].y) low = i;
    if (high == end || y > points[high].y) high = i;
  }
  for (const std::size_t i : std::set{low, high, gap}) {
    if (i != end) add_point(kept, points[i]);
  }
}

}  // namespace

std::string svg(const LinePlot& plot) {
  std::vector<double> xs, ys;
  const auto add = [&](const std::vector<Point>& points) {
    for (const Point& point : points) {
      if (!is_drawable(point, plot)) continue;
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  };
  for (const Series& series : plot.series) add(series.points);
  for (const Band& band : plot.bands) {
    add(band.low);
    add(band.high);
  }
  const AxisRange x = fit_axis(plot.x, xs), y = fit_axis(plot.y, ys);
  double top = 22;
  const std::string legend = svg_legend(legend_of(plot), top);
  Area area{.left = y_axis_width(y), .top = top + 7};
  area.width = kPlotWidth - area.left - 14;
  area.height = std::max(kLeastArea, kPlotHeight - area.top - kBelowArea);
  const Placing placing(x, y, area);
  std::string out =
      open_svg(area.bottom() + kBelowArea, line_plot_label(plot),
               fmt::format(R"(data-plot="line" data-a="{} {} {} {}" {} {})", area.left, area.top, area.width,
                           area.height, axis_data("x", plot.x, x), axis_data("y", plot.y, y)));
  out += svg_title(plot.title) + legend + svg_x_axis(plot.x, x, area) + svg_y_axis(plot.y, y, area);
  out += draw_marks(plot, x, area, placing);
  out += fmt::format("<g{}>", placing.transform());
  for (const Band& band : plot.bands) out += draw_band(band, plot.most_points, placing);
  for (const Series& series : plot.series) out += draw_series(series, plot, placing);
  return out + "</g></svg>";
}

std::vector<Point> downsampled(const std::vector<Point>& points, std::size_t most) {
  std::vector<Point> kept;
  if (points.size() <= std::max<std::size_t>(most, 4)) {
    for (const Point& point : points) add_point(kept, point);
    return kept;
  }
  const std::size_t num_stretches = std::max<std::size_t>(1, (most - 2) / 2), num_inner = points.size() - 2;
  add_point(kept, points.front());
  for (std::size_t i = 0; i < num_stretches; ++i) {
    add_extremes(kept, points, 1 + i * num_inner / num_stretches, 1 + (i + 1) * num_inner / num_stretches);
  }
  add_point(kept, points.back());
  return kept;
}

}  // namespace tessera
