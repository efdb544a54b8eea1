#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "record/metrics.h"
#include "results/page/plot.h"
#include "results/page/sections.h"
#include "results/tables/rows.h"

namespace tessera {
namespace {

bool is_weak(const RunRecord& run) {
  return run.text("experiment").find("weak_scaling") != std::string::npos;
}

// By number of ranks and of nodes, the newest of each.
std::vector<std::size_t> newest_by_ranks(const PageContent& page, const std::vector<std::size_t>& runs) {
  std::map<std::pair<double, int>, std::size_t> by_ranks;
  for (const std::size_t run : runs) {
    const std::pair key(*page.runs[run].num_ranks, num_nodes(*page.runs[run].record));
    const auto [found, is_new] = by_ranks.try_emplace(key, run);
    if (!is_new && page.runs[run].record->started > page.runs[found->second].record->started) found->second = run;
  }
  std::vector<std::size_t> sorted;
  for (const auto& [ranks, run] : by_ranks) sorted.push_back(run);
  return sorted;
}

bool is_measured(const RunFigures& run) {
  return run.is_finished() && run.num_ranks && *run.num_ranks > 0 && run.samples_per_second &&
         *run.samples_per_second > 0 && run.runtime_seconds && *run.runtime_seconds > 0;
}

std::string model_key(const RunRecord& run) {
  std::string key;
  const std::string precision = run.text("precision");
  if (!precision.empty()) key += ", " + precision;
  if (const auto parameters = run.facts.number("num_parameters")) {
    key += fmt::format(", {:.3g} M parameters", *parameters / 1e6);
  }
  return key;
}

// The newest measured run of the job that `is_meant` accepts.
template <typename Predicate>
std::optional<std::size_t> newest_of(const PageContent& page, const std::vector<std::size_t>& job,
                                     const Predicate& is_meant) {
  std::optional<std::size_t> newest;
  for (const std::size_t run : job) {
    if (!is_measured(page.runs[run]) || !is_meant(*page.runs[run].record)) continue;
    if (!newest || page.runs[run].record->started > page.runs[*newest].record->started) newest = run;
  }
  return newest;
}

// What the runs of a series are compared with: the baseline that their experiments name, else the run of 'single' with
// the same model and precision. None: their own first.
std::optional<std::size_t> baseline_of_series(const PageContent& page, const std::vector<std::size_t>& job,
                                              const std::vector<std::size_t>& series) {
  for (const std::size_t run : series) {
    const auto named = page.input.baselines.find(without_repeat(page.runs[run].record->text("experiment")));
    if (named == page.input.baselines.end() || named->second.empty()) continue;
    const auto found = newest_of(
        page, job, [&](const RunRecord& each) { return without_repeat(each.text("experiment")) == named->second; });
    if (found) return found;
  }
  const std::string model = model_key(*page.runs[series.front()].record);
  return newest_of(page, job,
                   [&](const RunRecord& each) { return strategy_text(each) == "single" && model_key(each) == model; });
}

// Runs that differ only in their numbers of ranks and nodes, fewest ranks first: of each setup the newest finished one.
// The first is what speed-ups are against: the baseline that the experiments name, else the run of 'single', else the
// run on the fewest ranks.
struct ScalingSeries {
  std::string name;               // the strategy; runs within a node and across nodes are series of their own
  std::vector<std::size_t> runs;  // places in PageContent::runs
};

// Strong scaling: same strategy, precision and layers, at least two numbers of ranks. Runs of weak_scaling experiments
// (fact 'experiment') are not among them.
std::vector<ScalingSeries> scaling_series(const PageContent& page, const std::vector<std::size_t>& job) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (const std::size_t run : job) {
    const RunFigures& figures = page.runs[run];
    if (!is_measured(figures) || is_weak(*figures.record)) continue;
    std::string key = figures.strategy.empty() ? "all runs" : figures.strategy;
    if (num_nodes(*figures.record) > 1) key += ", several nodes";
    groups[key + model_key(*figures.record)].push_back(run);
  }
  std::vector<ScalingSeries> all;
  for (const auto& [name, runs] : groups) {
    std::vector<std::size_t> sorted = newest_by_ranks(page, runs);
    const std::optional<std::size_t> baseline = baseline_of_series(page, job, sorted);
    if (baseline) {
      // The first point, also where runs of the series have as few ranks.
      std::erase_if(sorted, [&](std::size_t run) {
        return run == *baseline || *page.runs[run].num_ranks <= *page.runs[*baseline].num_ranks;
      });
      sorted.insert(sorted.begin(), *baseline);
    }
    if (*page.runs[sorted.front()].num_ranks < *page.runs[sorted.back()].num_ranks) {
      all.push_back({name, std::move(sorted)});
    }
  }
  return all;
}

// The runs of weak_scaling experiments, fewest ranks first; empty below two.
std::vector<std::size_t> weak_scaling_runs(const PageContent& page, const std::vector<std::size_t>& job) {
  std::vector<std::size_t> runs;
  for (const std::size_t run : job) {
    if (is_measured(page.runs[run]) && is_weak(*page.runs[run].record)) runs.push_back(run);
  }
  runs = newest_by_ranks(page, runs);
  return runs.size() > 1 ? runs : std::vector<std::size_t>();
}

std::string scaling_plot(const PageContent& page, const std::string& title, Axis y,
                         const std::vector<ScalingSeries>& all,
                         double (*value)(const RunFigures& run, const RunFigures& first),
                         double (*ideal)(double ranks, const Point& first)) {
  LinePlot plot;
  plot.title = title;
  plot.y = std::move(y);
  double least = *page.runs[all.front().runs.front()].num_ranks, most = least;
  for (const ScalingSeries& each : all) {
    const RunFigures& first = page.runs[each.runs.front()];
    Series series{each.name, {}, static_cast<int>(plot.series.size())};
    for (const std::size_t run : each.runs) {
      series.points.push_back({*page.runs[run].num_ranks, value(page.runs[run], first)});
    }
    least = std::min(least, series.points.front().x);
    most = std::max(most, series.points.back().x);
    plot.x = {.label = first.rank_word() == "GPU" ? "GPUs" : "ranks", .scale = AxisScale::kLog2};
    plot.series.push_back(std::move(series));
  }
  // What it would be if nothing were lost: from the first point of the first series.
  const Point first = plot.series.front().points.front();
  Series line{"ideal", {}, 0, Series::Role::kReference};
  for (double ranks = least; ranks <= most; ranks *= 2) line.points.push_back({ranks, ideal(ranks, first)});
  if (line.points.back().x < most) line.points.push_back({most, ideal(most, first)});
  plot.series.push_back(std::move(line));
  return svg(plot);
}

}  // namespace

std::vector<std::string> scaling_plots(const PageContent& page, const std::vector<std::size_t>& job) {
  std::vector<std::string> plots;
  const std::vector<ScalingSeries> all = scaling_series(page, job);
  if (!all.empty()) {
    plots.push_back(scaling_plot(
        page, "Throughput against GPUs", {.label = "speed", .unit = "samples/s", .scale = AxisScale::kLog2}, all,
        [](const RunFigures& run, const RunFigures&) { return *run.samples_per_second; },
        [](double ranks, const Point& first) { return first.y * ranks / first.x; }));
    plots.push_back(scaling_plot(
        page, "Speed-up against GPUs", {.label = "speed-up", .unit = "times", .scale = AxisScale::kLog2}, all,
        [](const RunFigures& run, const RunFigures& first) {
          return *run.samples_per_second / *first.samples_per_second * *first.num_ranks;
        },
        [](double ranks, const Point&) { return ranks; }));
  }
  if (const std::vector<std::size_t> weak = weak_scaling_runs(page, job); !weak.empty()) {
    double longest = 0;
    for (const std::size_t run : weak) longest = std::max(longest, *page.runs[run].runtime_seconds);
    Axis time = time_axis("runtime", longest);
    time.from_zero = true;
    plots.push_back(scaling_plot(
        page, "Runtime under weak scaling", time, {{"runtime", weak}},
        [](const RunFigures& run, const RunFigures&) { return *run.runtime_seconds; },
        [](double, const Point& first) { return first.y; }));
    plots.push_back(scaling_plot(
        page, "Efficiency under weak scaling", {.label = "baseline / runtime", .unit = "%", .from_zero = true},
        {{"efficiency", weak}},
        [](const RunFigures& run, const RunFigures& first) {
          return 100 * *first.runtime_seconds / *run.runtime_seconds;
        },
        [](double, const Point&) { return 100.0; }));
  }
  return plots;
}

}  // namespace tessera
