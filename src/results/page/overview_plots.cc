// Plots over all runs: of each job its losses, speeds and memory; scaling; planned memory; ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/quantity.h"
#include "results/page/html.h"
#include "results/page/plot.h"
#include "results/page/sections.h"

namespace tessera {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostNamed = 8;   // curves with a colour of their own
constexpr std::size_t kMostFaint = 60;  // further curves, all in one grey
constexpr std::size_t kMostBars = 24;
constexpr std::size_t kMostColumns = 64;

class OverviewPlots {
 public:
  explicit OverviewPlots(const PageContent& page) : page_(page) {}

  std::string all() {
    const std::vector<std::vector<std::size_t>> jobs = runs_by_job(page_);
    for (const std::vector<std::size_t>& job : jobs) {
      if (jobs.size() > 1) begin_group(page_.runs[job.front()].job);
      add_job(job);
    }
    if (jobs.size() > 1) begin_group("All jobs");
    add_rank_times();
    add_gates();
    add_bandwidths();
    end_group();
    return html_;
  }

 private:
  void begin_group(const std::string& heading) {
    end_group();
    heading_ = "<h3>" + html_text(heading) + "</h3>";
  }
  void end_group() {
    if (!plots_.empty()) html_ += heading_ + "<div class=\"plots\">" + plots_ + "</div>";
    plots_.clear();
  }

  // Lines first, then bars: drawings of one height stand side by side.
  void add_job(const std::vector<std::size_t>& job) {
    add_curves("Train loss", "loss", job, {"loss", "Loss/train"});
    add_curves("Eval loss", "loss", job, {"eval_loss"});
    add_curves("F1", "F1", job, {"eval_f1"});
    add_curves("Exact match", "exact match", job, {"eval_exact_match"});
    for (const std::string& plot : scaling_plots(page_, job)) plots_ += figure(plot);
    add_bars("Throughput", {.label = "speed", .unit = "samples/s"}, job, {"samples per second"},
             {"samples_per_second"});
    add_memory_bars("Memory allocated per rank", "allocated (torch's allocator)", job,
                    {"allocated_peak_MB", "allocated_mean_MB"});
    add_memory_bars("GPU memory used per GPU", "used (NVML, all processes)", job, {"used_peak_MB", "used_mean_MB"});
    add_memory_bars("Host memory per rank", "resident", job, {"resident_peak_MB", "resident_mean_MB"});
    add_planned("Planned and measured memory", job);
  }

  // Colours for the first few runs that have the metric; the others grey, all named on hover.
  void add_curves(const std::string& title, const std::string& axis, const std::vector<std::size_t>& job,
                  const std::vector<std::string>& metrics) {
    LinePlot plot;
    plot.title = title;
    plot.x = {.label = "step", .is_whole = true, .is_tight = true};
    plot.most_points = job.size() > 20 ? 100 : 300;
    std::size_t num_found = 0;
    for (const std::size_t run : job) {
      const MetricCurves curves(*page_.runs[run].record);
      std::vector<Point> points;
      for (const std::string& metric : metrics) {
        if (points.empty()) points = curves.curve(metric, CurveX::kStep);
      }
      if (points.empty() || ++num_found > kMostNamed + kMostFaint) continue;
      const bool is_named = num_found <= kMostNamed;
      plot.series.push_back({page_.runs[run].name, std::move(points), static_cast<int>(num_found - 1),
                             is_named ? Series::Role::kData : Series::Role::kFaint});
    }
    if (plot.series.size() < 2 && page_.runs.size() > 1) return;
    const auto is_curve = [](const Series& series) { return series.points.size() > 1; };
    if (std::ranges::none_of(plot.series, is_curve)) return;
    // Grey below the colours.
    std::stable_partition(plot.series.begin(), plot.series.end(),
                          [](const Series& series) { return series.role == Series::Role::kFaint; });
    plot.y = number_axis(axis, "", largest_y(plot.series));
    std::string caption;
    if (num_found > kMostNamed) {
      caption = fmt::format("{} runs; the first {} in colour, {} in grey.", num_found, kMostNamed,
                            std::min(num_found - kMostNamed, kMostFaint));
    }
    plots_ += figure(svg(plot), caption);
  }

  // The runs that have the first figure, at most as many as a plot can hold: the first ones.
  std::vector<std::size_t> with_figure(const std::vector<std::size_t>& job, const char* metric,
                                       std::string& caption) const {
    std::vector<std::size_t> runs;
    for (const std::size_t run : job) {
      if (page_.runs[run].value(metric)) runs.push_back(run);
    }
    if (runs.size() > kMostBars) {
      caption = fmt::format("The first {} of {} runs; all are in the table.", kMostBars, runs.size());
      runs.resize(kMostBars);
    }
    return runs;
  }

  void add_bars(const std::string& title, const Axis& axis, const std::vector<std::size_t>& job,
                const std::vector<std::string>& parts, const std::vector<const char*>& metrics) {
    BarPlot plot;
    plot.title = title;
    plot.label_title = "run";
    plot.value = axis;
    plot.parts = parts;
    std::string caption;
    for (const std::size_t run : with_figure(job, metrics.front(), caption)) {
      BarPlot::Bar bar{page_.runs[run].name, {}};
      for (const char* metric : metrics) bar.values.push_back(page_.runs[run].value(metric).value_or(kNoValue));
      plot.bars.push_back(std::move(bar));
    }
    if (!plot.bars.empty()) plots_ += figure(svg(plot), caption);
  }

  void add_memory_bars(const std::string& title, const std::string& label, const std::vector<std::size_t>& job,
                       const std::vector<const char*>& peak_and_mean) {
    double most = 0;
    for (const std::size_t run : job) most = std::max(most, page_.runs[run].value(peak_and_mean.front()).value_or(0));
    add_bars(title, memory_axis(label, most), job, {"peak", "mean"}, peak_and_mean);
  }

  // Two bars per run: what was planned, by part, and the allocator's peak.
  void add_planned(const std::string& title, const std::vector<std::size_t>& job) {
    constexpr std::pair<const char*, const char*> parts[] = {{"parameters", "parameters"},
                                                             {"gradients", "gradients"},
                                                             {"optimizer", "optimizer"},
                                                             {"in_flight", "in flight"},
                                                             {"activations", "activations"}};
    BarPlot plot;
    plot.title = title;
    plot.label_title = "run";
    plot.is_stacked = true;
    for (const auto& [key, name] : parts) plot.parts.push_back(name);
    plot.parts.push_back("measured peak (allocated)");
    double most = 0;
    for (const std::size_t run : job) {
      const RunFigures& figures = page_.runs[run];
      const std::optional<double> peak = figures.value("allocated_peak_MB");
      if (figures.record->planned_memory.empty() || !peak) continue;
      if (plot.bars.size() == kMostBars) break;
      BarPlot::Bar planned{figures.name + ", plan", {}}, measured{"measured", {}};
      for (const auto& [key, name] : parts) {
        planned.values.push_back(figures.record->planned_memory.number(key).value_or(0) / kBytesPerMb);
        measured.values.push_back(kNoValue);
      }
      measured.values.push_back(*peak);
      double sum = 0;
      for (const double value : planned.values) sum += value;
      most = std::max({most, sum, *peak});
      plot.bars.push_back(std::move(planned));
      plot.bars.push_back(std::move(measured));
    }
    if (plot.bars.empty()) return;
    plot.value = memory_axis("memory per rank at the peak of a step", most);
    plots_ += figure(svg(plot));
  }

  void add_rank_times() {
    HeatMap map;
    map.title = "Mean step time of each rank (ms)";
    map.row_title = "run";
    map.column_title = "rank";
    map.value_label = "mean step";
    map.unit = "ms";
    std::size_t num_columns = 0;
    for (const RunFigures& run : page_.runs) {
      std::vector<double> row;
      bool has_value = false;
      for (const RankRecord& rank : run.record->ranks) {
        if (row.size() == kMostColumns) break;
        row.push_back(rank.numbers.number("step_mean_ms").value_or(kNoValue));
        has_value |= std::isfinite(row.back());
      }
      if (!has_value || row.size() < 2 || map.rows.size() == kMostBars) continue;
      num_columns = std::max(num_columns, row.size());
      map.rows.push_back(run.name);
      map.values.push_back(std::move(row));
    }
    if (map.rows.empty()) return;
    for (std::size_t i = 0; i < num_columns; ++i) map.columns.push_back(std::to_string(i));
    plots_ += figure(svg(map));
  }

  void add_gates() {
    BarPlot plot;
    plot.title = "Bandwidth gate";
    plot.label_title = "run";
    plot.value = {.label = "bus bandwidth", .unit = "GB/s"};
    plot.parts = {"bus bandwidth before the run"};
    for (const RunFigures& run : page_.runs) {
      const std::optional<double> gate = run.record->facts.number("gate_GBps");
      if (gate && plot.bars.size() < kMostBars) plot.bars.push_back({run.name, {*gate}});
    }
    if (!plot.bars.empty()) plots_ += figure(svg(plot));
  }

  void add_bandwidths() {
    LinePlot plot;
    plot.title = "Bus bandwidth by message size";
    double largest = 0;
    for (const BandwidthLog& log : page_.input.bandwidth_logs) {
      for (const BandwidthLog::Row& row : log.rows) largest = std::max(largest, row.bytes);
    }
    constexpr double kKiB = 1024, kMiB = 1024 * 1024;
    const bool is_large = largest > 512 * kMiB;
    plot.x = {.label = "message",
              .unit = is_large ? "MiB" : "KiB",
              .scale = AxisScale::kLog2,
              .per_unit = is_large ? kMiB : kKiB};
    plot.y = {.label = "bus bandwidth", .unit = "GB/s", .scale = AxisScale::kLog10};
    for (const BandwidthLog& log : page_.input.bandwidth_logs) {
      if (log.rows.size() < 2 || plot.series.size() == kMostNamed) continue;  // a gate measures one size: see above
      Series series{log.name, {}, static_cast<int>(plot.series.size())};
      for (const BandwidthLog::Row& row : log.rows) series.points.push_back({row.bytes, row.bus_GBps});
      plot.series.push_back(std::move(series));
    }
    if (!plot.series.empty()) plots_ += figure(svg(plot));
  }

  const PageContent& page_;
  std::string heading_, plots_, html_;
};

}  // namespace

std::string overview_section(const PageContent& page) {
  const std::string plots = OverviewPlots(page).all();
  return plots.empty() ? "" : section("overview", overview_title(page), plots);
}

}  // namespace tessera
