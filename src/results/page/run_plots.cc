// The plots of one run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "results/page/html.h"
#include "results/page/plot.h"
#include "results/page/sections.h"

namespace tessera {
namespace {

// More GPUs than that are shown as a band; on a page of many runs a line for each would take too much room.
constexpr std::size_t kMostLines = kNumStyles, kMostLinesOfMany = 8;
constexpr std::size_t kMostRankBars = 16;
constexpr double kFarCapacity = 3;  // times the highest reading

class RunPlots {
 public:
  RunPlots(const PageContent& page, std::size_t run)
      : page_(page), run_(run), record_(*page.runs[run].record), curves_(record_) {}

  std::vector<std::string> all() {
    add_losses();
    add_metric("Learning rate", "learning rate", "", {{"learning_rate", "learning rate"}});
    add_metric("Gradient norm", "gradient norm", "", {{"grad_norm", "gradient norm"}});
    add_metric("Throughput", "speed", "samples/s", {{"train/samples_per_second", "all ranks"}});
    add_epochs();
    add_usage();
    add_logs();
    add_breakdown();
    return std::move(plots_);
  }

 private:
  struct Curve {
    const char *metric, *name;
  };

  LinePlot line_plot(const std::string& title, CurveX x) const {
    LinePlot plot;
    plot.title = title;
    plot.most_points = page_.most_points;
    if (x == CurveX::kSeconds) {
      plot.x = time_axis("time", curves_.seconds());
      plot.marks = curves_.epoch_ends();
    } else {
      plot.x = {.label = x == CurveX::kStep ? "step" : "epoch", .is_whole = true};
    }
    plot.x.is_tight = true;
    return plot;
  }

  std::vector<Series> series(const std::vector<Curve>& curves, CurveX x) const {
    std::vector<Series> all;
    for (std::size_t i = 0; i < curves.size(); ++i) {
      std::vector<Point> points = curves_.curve(curves[i].metric, x);
      if (!points.empty()) all.push_back({curves[i].name, std::move(points), static_cast<int>(i)});
    }
    return all;
  }

  void add_metric(const std::string& title, const std::string& label, const std::string& unit,
                  const std::vector<Curve>& curves, CurveX x = CurveX::kStep) {
    LinePlot plot = line_plot(title, x);
    plot.series = series(curves, x);
    if (plot.series.empty()) return;
    plot.y = number_axis(label, unit, largest_y(plot.series));
    plots_.push_back(figure(svg(plot)));
  }

  void add_losses() {
    const std::vector<Curve> losses = {{"loss", "train"}, {"eval_loss", "eval"}};
    add_metric("Loss by step", "loss", "", losses);
    add_metric("Loss by time", "loss", "", losses, CurveX::kSeconds);
  }

  void add_epochs() {
    add_metric("Loss by epoch", "loss", "", {{"Loss/train", "train"}, {"Loss/val", "validation"}}, CurveX::kEpoch);
    add_metric("Accuracy by epoch", "accuracy", "%", {{"Accuracy/train", "train"}, {"Accuracy/val", "validation"}},
               CurveX::kEpoch);
    add_metric("Throughput by epoch", "speed", "images/s", {{"Throughput/images_per_sec", "all ranks"}},
               CurveX::kEpoch);
    add_metric("Learning rate by epoch", "learning rate", "", {{"LR", "learning rate"}}, CurveX::kEpoch);
  }

  // One line per GPU; beyond what colours and dashes can tell apart, the range over all and their mean.
  void add_lines(LinePlot plot, std::vector<Series> lines) {
    if (lines.empty()) return;
    double last = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      lines[i].style = static_cast<int>(i);
      if (!lines[i].points.empty()) last = std::max(last, lines[i].points.back().x);
    }
    plot.x = time_axis("time", last);
    plot.x.is_tight = true;
    if (lines.size() > (page_.has_many() ? kMostLinesOfMany : kMostLines)) {
      spread_of(lines, plot);
    } else {
      // Many lines share the points that one would have: the page's size stays the same.
      plot.most_points = std::max<std::size_t>(24, 2 * plot.most_points / (lines.size() + 1));
      plot.series.insert(plot.series.begin(), lines.begin(), lines.end());
    }
    plots_.push_back(figure(svg(plot)));
  }

  static void spread_of(const std::vector<Series>& lines, LinePlot& plot) {
    Band band{fmt::format("lowest to highest of {}", lines.size()), {}, {}, 0};
    Series mean{"mean", {}, 0};
    std::size_t length = 0;
    for (const Series& line : lines) length = std::max(length, line.points.size());
    for (std::size_t i = 0; i < length; ++i) {
      double low = INFINITY, high = -INFINITY, sum = 0, x = 0;
      int count = 0;
      for (const Series& line : lines) {
        if (i >= line.points.size() || !std::isfinite(line.points[i].y)) continue;
        low = std::min(low, line.points[i].y);
        high = std::max(high, line.points[i].y);
        sum += line.points[i].y;
        x = line.points[i].x;
        ++count;
      }
      if (count == 0) continue;
      band.low.push_back({x, low});
      band.high.push_back({x, high});
      mean.points.push_back({x, sum / count});
    }
    plot.bands.push_back(std::move(band));
    plot.series.push_back(std::move(mean));
  }

  std::vector<Series> usage(std::vector<double> UsageSeries::*values) const {
    std::vector<Series> lines;
    for (const RankRecord& rank : record_.ranks) {
      Series line{fmt::format("rank {}", rank.rank), {}, 0};
      const std::vector<double>& readings = rank.series.*values;
      for (std::size_t i = 0; i < readings.size(); ++i) {
        const double seconds = rank.series.start_seconds + static_cast<double>(i + 1) * rank.series.period_seconds;
        line.points.push_back({seconds, readings[i]});
      }
      if (!line.points.empty()) lines.push_back(std::move(line));
    }
    return lines;
  }

  void add_memory(const std::string& title, const std::string& label, std::vector<Series> lines, double capacity_MB) {
    if (lines.empty()) return;
    LinePlot plot = line_plot(title, CurveX::kSeconds);
    double last = 0, highest = largest_y(lines);
    for (const Series& line : lines) {
      if (!line.points.empty()) last = std::max(last, line.points.back().x);
    }
    if (capacity_MB > 0) {
      // A line far above the curves would press them flat: then it is only named.
      const bool is_far = capacity_MB > kFarCapacity * highest;
      Series capacity{"capacity " + readable_MB(capacity_MB) + (is_far ? ", above this plot" : ""), {}, 0};
      capacity.role = Series::Role::kReference;
      if (!is_far) capacity.points = {{0, capacity_MB}, {last, capacity_MB}};
      if (!is_far) highest = std::max(highest, capacity_MB);
      plot.series.push_back(std::move(capacity));
    }
    plot.y = memory_axis(label, highest);
    add_lines(std::move(plot), std::move(lines));
  }

  void add_usage() {
    const bool is_gpu = page_.runs[run_].rank_word() == "GPU";
    double capacity = 0;
    for (const RankRecord& rank : record_.ranks) {
      capacity = std::max(capacity, rank.numbers.number("capacity_MB").value_or(0));
    }
    add_memory("GPU memory allocated (torch's allocator)", "allocated", usage(&UsageSeries::allocated_MB), capacity);
    add_memory("GPU memory reserved (torch's allocator)", "reserved", usage(&UsageSeries::reserved_MB), capacity);
    add_memory("GPU memory used (NVML, all processes)", "used", usage(&UsageSeries::used_MB), capacity);
    add_memory("Process memory (resident)", "resident", usage(&UsageSeries::resident_MB), 0);
    LinePlot plot = line_plot(is_gpu ? "GPU utilisation" : "CPU utilisation", CurveX::kSeconds);
    plot.y = {.label = "busy", .unit = "%", .from_zero = true};
    add_lines(std::move(plot), usage(&UsageSeries::busy_percent));
  }

  std::vector<Series> of_logs(const std::vector<LogCurve>& logs) const {
    std::vector<Series> lines;
    for (const LogCurve& log : logs) {
      if (log.run == run_) lines.push_back({log.name, log.points, 0});
    }
    return lines;
  }

  void add_logs() {
    double capacity = 0;
    for (const LogCurve& log : page_.input.gpu_logs) {
      if (log.run == run_) capacity = std::max(capacity, log.capacity_MB);
    }
    add_memory("GPU memory used (GPU memory log)", "used, all processes", of_logs(page_.input.gpu_logs), capacity);
    add_memory("Host memory (CPU memory log)", "resident, all processes of the job", of_logs(page_.input.host_logs), 0);
    LinePlot plot = line_plot("CPU utilisation (CPU memory log)", CurveX::kSeconds);
    plot.y = number_axis("CPU, 100 is one core", "%", 0);
    plot.y.from_zero = true;
    add_lines(std::move(plot), of_logs(page_.input.cpu_logs));
  }

  // The slowest ranks where there are many.
  std::vector<const RankRecord*> shown_ranks() const {
    std::vector<const RankRecord*> ranks;
    for (const RankRecord& rank : record_.ranks) {
      if (!rank.parts.empty()) ranks.push_back(&rank);
    }
    if (ranks.size() <= kMostRankBars) return ranks;
    std::stable_sort(ranks.begin(), ranks.end(), [](const RankRecord* a, const RankRecord* b) {
      return a->numbers.number("step_mean_ms").value_or(0) > b->numbers.number("step_mean_ms").value_or(0);
    });
    ranks.resize(kMostRankBars);
    return ranks;
  }

  void add_breakdown() {
    const std::vector<const RankRecord*> ranks = shown_ranks();
    if (ranks.empty()) return;
    BarPlot plot;
    plot.title = "Where a step's time goes";
    plot.label_title = "rank";
    plot.value = {.label = "mean time per step", .unit = "ms"};
    plot.is_stacked = true;
    for (const PartTime& part : ranks.front()->parts) plot.parts.push_back(part.name);
    for (const RankRecord* rank : ranks) {
      BarPlot::Bar bar{std::to_string(rank->rank), {}};
      for (const std::string& name : plot.parts) {
        const auto part = std::find_if(rank->parts.begin(), rank->parts.end(),
                                       [&](const PartTime& each) { return each.name == name; });
        bar.values.push_back(part == rank->parts.end() ? std::numeric_limits<double>::quiet_NaN() : part->mean_ms);
      }
      plot.bars.push_back(std::move(bar));
    }
    const bool is_cut = ranks.size() < record_.ranks.size();
    plots_.push_back(figure(
        svg(plot), is_cut ? fmt::format("The {} slowest of {} ranks.", ranks.size(), record_.ranks.size()) : ""));
  }

  const PageContent& page_;
  std::size_t run_;
  const RunRecord& record_;
  MetricCurves curves_;
  std::vector<std::string> plots_;
};

}  // namespace

double largest_y(const std::vector<Series>& all) {
  double largest = 0;
  for (const Series& series : all) {
    for (const Point& point : series.points) {
      if (std::isfinite(point.y)) largest = std::max(largest, std::abs(point.y));
    }
  }
  return largest;
}

std::vector<std::string> run_plots(const PageContent& page, std::size_t run) {
  return RunPlots(page, run).all();
}

}  // namespace tessera
