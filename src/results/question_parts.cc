#include "results/question_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "record/metrics.h"
#include "record/run_memory.h"
#include "record/run_record.h"

namespace tessera::internal {
namespace {

std::string facts_key(const RunRecord& run, const std::vector<std::string>& facts) {
  std::string key;
  for (const std::string& fact : facts) key += fact_text(run, fact) + "\n";
  return key;
}

std::optional<CommonFigure> figure_of_all(const Runs& runs, const std::string& name, const std::string& metric) {
  CommonFigure figure{name, {}};
  for (const RunRecord* run : runs) {
    const std::optional<double> value = value_of(*run, metric);
    if (!value) return std::nullopt;
    figure.MiB.push_back(*value);
  }
  return figure;
}

}  // namespace

Runs runs_to_ask(const std::vector<RunRecord>& runs) {
  static const std::vector<std::string> same = {
      "job",          "strategy",   "offload_optimizer", "offload_param", "units_on_device", "pin_memory",
      "nodes",        "ranks",      "num_parameters",    "precision",     "label_mode",      "batch_size",
      "accumulation", "train_rows", "num_layers"};
  Runs newest;
  std::map<std::string, std::size_t> place_of;
  for (const RunRecord& run : runs) {
    if (!has_finished(run)) continue;
    const auto [place, is_new] = place_of.emplace(facts_key(run, same), newest.size());
    if (is_new) {
      newest.push_back(&run);
    } else if (run.started > newest[place->second]->started) {
      newest[place->second] = &run;
    }
  }
  return newest;
}

std::vector<Runs> grouped_by(const Runs& runs, const std::vector<std::string>& facts) {
  std::vector<Runs> groups;
  std::map<std::string, std::size_t> place_of;
  for (const RunRecord* run : runs) {
    const auto [place, is_new] = place_of.emplace(facts_key(*run, facts), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(run);
  }
  return groups;
}

Runs by_number(const Runs& runs, const std::string& fact) {
  Runs sorted;
  for (const RunRecord* run : runs) {
    if (run->facts.number(fact)) sorted.push_back(run);
  }
  const auto less = [&](const RunRecord* a, const RunRecord* b) {
    return number_fact(*a, fact) < number_fact(*b, fact);
  };
  std::stable_sort(sorted.begin(), sorted.end(), less);
  const auto is_equal = [&](const RunRecord* a, const RunRecord* b) {
    return number_fact(*a, fact) == number_fact(*b, fact);
  };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), is_equal), sorted.end());
  return sorted;
}

double number_fact(const RunRecord& run, const std::string& fact) {
  return run.facts.number(fact).value_or(0);
}

bool offloads(const RunRecord& run) {
  return fact_is_true(run, "offload_optimizer") || fact_is_true(run, "offload_param");
}

std::string model_text(const RunRecord& run) {
  const std::optional<double> parameters = run.facts.number("num_parameters");
  return job_text(run) +
         (parameters ? fmt::format(", {} parameters", grouped(static_cast<long long>(*parameters))) : "");
}

std::string ranks_text(const RunRecord& run) {
  const int ranks = num_ranks(run), nodes = num_nodes(run);
  return fmt::format("{} rank{} on {} node{}", ranks, ranks == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
}

std::string percent_text(double now, double before) {
  return before == 0 ? "?" : fmt::format("{:+.1f} %", 100 * (now - before) / before);
}

std::optional<CommonFigure> common_peak(const Runs& runs) {
  if (auto figure = figure_of_all(runs, "allocated", "allocated_peak_MB")) return figure;
  if (auto figure = figure_of_all(runs, "used, by NVML", "used_peak_MB")) return figure;
  return figure_of_all(runs, "used, by the memory log of the first GPU", "gpu_log_peak_MB");
}

std::optional<CommonFigure> common_average(const Runs& runs) {
  if (auto figure = figure_of_all(runs, "used, by NVML", "used_mean_MB")) return figure;
  return figure_of_all(runs, "used, by the memory log of the first GPU", "gpu_log_average_MB");
}

}  // namespace tessera::internal
