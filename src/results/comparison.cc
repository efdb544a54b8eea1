#include "results/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "train/listener.h"

namespace tessera {
namespace {

std::map<std::string, std::string> traits_of(const RunRecord& run) {
  static const std::set<std::string> repeats_differ_in = {
      "output_dir", "logging_dir",   "log_dir",        "run_name",      "seed",        "data_seed",    "experiment",
      "gate_GBps",  "job_id",        "report_to",      "wandb_name",    "wandb_dir",   "wandb_run_id", "wandb_mode",
      "monitor",    "wandb_project", "monitor_period", "profile_steps", "disable_tqdm"};
  std::map<std::string, std::string> traits;
  for (const auto& [name, value] : run.facts.entries()) traits[name] = fact_text(run, name);
  for (const RecordedSetting& setting : run.settings) traits[setting.name] = setting.value;
  for (const std::string& name : repeats_differ_in) traits.erase(name);
  traits["ranks"] = std::to_string(num_ranks(run));
  traits["commit"] = run.commit;
  const std::set<std::string> devices(run.devices.begin(), run.devices.end());
  traits["devices"] = join({devices.begin(), devices.end()}, ", ");
  return traits;
}

std::vector<RunGroup> group_runs(const std::vector<ComparedSide>& sides, bool keeps_sides_apart) {
  std::vector<RunGroup> groups;
  for (std::size_t side = 0; side < sides.size(); ++side) {
    for (const RunRecord& run : sides[side].runs) {
      std::map<std::string, std::string> traits = traits_of(run);
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const RunGroup& each) {
        return each.traits == traits && (!keeps_sides_apart || each.sides.contains(side));
      });
      RunGroup& group = same != groups.end() ? *same : groups.emplace_back();
      group.runs.push_back(&run);
      group.traits = std::move(traits);
      group.sides.insert(side);
    }
  }
  return groups;
}

// The group of the first folder that differs from this one in nothing but the program and the machine: what it is
// judged against. Else the first group.
std::size_t baseline_of(const RunGroup& group, const std::vector<RunGroup>& all) {
  const auto without_version = [](std::map<std::string, std::string> traits) {
    traits.erase("commit");
    traits.erase("devices");
    return traits;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].sides.contains(0) && without_version(all[i].traits) == without_version(group.traits)) return i;
  }
  return 0;
}

// The folder that the user named, if the group is all that is in it.
std::string name_of_group(const RunGroup& group, const std::vector<ComparedSide>& sides) {
  const ComparedSide& side = sides[*group.sides.begin()];
  const std::vector<const RunRecord*>& runs = group.runs;
  if (group.sides.size() == 1 && side.runs.size() == runs.size()) return side.name;
  const std::string first = folder_text(*runs.front());
  return runs.size() == 1 ? first : fmt::format("{} and {} more", first, runs.size() - 1);
}

std::vector<DifferingSetting> differing_settings(const std::vector<RunGroup>& groups) {
  std::set<std::string> names;
  for (const RunGroup& group : groups) {
    for (const auto& [name, value] : group.traits) names.insert(name);
  }
  std::vector<DifferingSetting> differing;
  for (const std::string& name : names) {
    DifferingSetting setting{name, {}};
    for (const RunGroup& group : groups) {
      const auto found = group.traits.find(name);
      setting.values.push_back(found == group.traits.end() ? "" : found->second);
    }
    if (std::set<std::string>(setting.values.begin(), setting.values.end()).size() > 1) {
      differing.push_back(std::move(setting));
    }
  }
  return differing;
}

Better better_of(const std::string& name) {
  const auto has_any = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return name.find(word) != std::string::npos; });
  };
  if (has_any({"loss", "Loss", "_ms", "_MB", "runtime", "skipped"})) return Better::kLower;
  if (has_any({"per_second", "accuracy", "Accuracy", "exact_match", "f1"})) return Better::kHigher;
  return Better::kUnknown;  // learning_rate, grad_norm
}

// A name that runs logged, but that is not in the registry.
Metric logged_metric(const std::string& name) {
  return {name, name, "", 4, better_of(name), [name](const RunRecord& run) {
            const std::optional<double> summary = run.summary.number(name);
            return summary ? summary : run.last(name);
          }};
}

// So that the smallest value has four digits: a learning rate is often less than 0.0001.
int digits_for(const Metric& metric, const std::vector<const RunRecord*>& runs) {
  constexpr int kMostDigits = 12;
  int digits = metric.digits;
  for (const RunRecord* run : runs) {
    const double size = std::abs(metric.compute(*run).value_or(0));
    if (size > 0 && std::isfinite(size)) digits = std::max(digits, 3 - static_cast<int>(std::floor(std::log10(size))));
  }
  return std::min(digits, kMostDigits);
}

// All names under which the runs logged numbers, each with the name that metrics.csv has for it.
std::map<std::string, std::string> logged_names(const std::vector<const RunRecord*>& runs) {
  std::map<std::string, std::string> names;
  for (const RunRecord* run : runs) {
    for (const LogRecord& record : run->metrics) {
      for (const auto& [key, value] : record.entries()) {
        if (key != "step" && key != "time") names.emplace(key, metric_name(key));
      }
    }
  }
  return names;
}

std::optional<Metric> metric_named(const std::string& name, const std::vector<Metric>& known,
                                   const std::vector<const RunRecord*>& runs) {
  for (const Metric& metric : known) {
    if (metric.name == name) return metric;
  }
  const Metric* registered = find_metric(name);
  Metric metric = registered != nullptr ? *registered : logged_metric(name);
  const auto has_it = [&](const RunRecord* run) { return metric.compute(*run).has_value(); };
  if (std::none_of(runs.begin(), runs.end(), has_it)) return std::nullopt;
  if (registered == nullptr) metric.digits = digits_for(metric, runs);
  return metric;
}

std::vector<Metric> metrics_to_compare(const std::vector<const RunRecord*>& runs, const std::string& metric) {
  const std::vector<Metric> all = shown_metrics(runs);
  if (metric.empty()) return all;
  if (std::optional<Metric> found = metric_named(metric, all, runs)) return {*std::move(found)};
  std::vector<std::string> names;
  for (const Metric& each : all) names.push_back(each.name);
  std::vector<std::string> candidates = names;
  for (const auto& [key, name] : logged_names(runs)) {
    if (name == metric) {
      if (std::optional<Metric> found = metric_named(key, all, runs)) return {*std::move(found)};
    }
    candidates.insert(candidates.end(), {key, name});
  }
  throw UsageError(fmt::format("--metric {}: none of the runs has it{}; figures: {}", metric,
                               did_you_mean(metric, candidates), join(names, ", ")));
}

std::vector<std::string> unfinished_notes(const std::vector<const RunRecord*>& runs, double now) {
  std::vector<std::string> notes;
  for (const RunRecord* run : runs) {
    if (run->status == "finished") continue;
    const std::string so_far = status_of(*run, now) == "running" ? "; its figures are those so far" : "";
    notes.push_back(fmt::format("{}: {}{}", folder_text(*run), status_with_reason(*run, now), so_far));
  }
  return notes;
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  spread.num_runs = static_cast<int>(values.size());
  for (const double value : values) spread.mean += value / static_cast<double>(values.size());
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return spread;
}

std::optional<Spread> spread_over(const RunGroup& group,
                                  const std::function<std::optional<double>(const RunRecord&)>& figure) {
  std::vector<double> values;
  for (const RunRecord* run : group.runs) {
    if (const std::optional<double> value = figure(*run); value && std::isfinite(*value)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return spread_of(values);
}

std::optional<double> ComparedMetric::change_percent(std::size_t group) const {
  if (group == 0 || !values.front() || !values[group]) return std::nullopt;
  const double baseline = values.front()->mean;
  if (std::abs(baseline) < 0.5 * std::pow(10.0, -metric.digits)) return std::nullopt;
  return 100 * (values[group]->mean - baseline) / std::abs(baseline);
}

bool ComparedMetric::is_within_spread(std::size_t group) const {
  if (!values.front() || !values[group]) return false;
  const double deviation = std::max(values.front()->deviation, values[group]->deviation);
  return std::abs(values[group]->mean - values.front()->mean) <= deviation;
}

Comparison compare_runs(const std::vector<ComparedSide>& sides, const std::string& metric, const GateLimits& limits,
                        double now) {
  std::vector<const RunRecord*> runs;
  std::vector<std::string> problems;
  for (const ComparedSide& side : sides) {
    if (side.runs.empty()) throw UsageError(fmt::format("{}: no readable run below it", side.name));
    for (const RunRecord& run : side.runs) runs.push_back(&run);
    problems.insert(problems.end(), side.problems.begin(), side.problems.end());
  }
  if (runs.size() < 2) throw UsageError("there is only one run: name another to compare it with");
  // Runs of different folders are never repeats: whoever names two wants them compared.
  Comparison comparison;
  comparison.groups = group_runs(sides, sides.size() > 1);
  comparison.settings = differing_settings(comparison.groups);
  for (RunGroup& each : comparison.groups) {
    each.name = name_of_group(each, sides);
    each.is_judged = sides.size() == 1 || !each.sides.contains(0);
    each.baseline = sides.size() == 1 ? 0 : baseline_of(each, comparison.groups);
  }
  for (Metric& each : metrics_to_compare(runs, metric)) {
    ComparedMetric compared{std::move(each), {}};
    for (const RunGroup& group : comparison.groups)
      compared.values.push_back(spread_over(group, compared.metric.compute));
    const auto is_there = [](const std::optional<Spread>& value) { return value.has_value(); };
    if (std::any_of(compared.values.begin(), compared.values.end(), is_there)) {
      comparison.metrics.push_back(std::move(compared));
    }
  }
  comparison.notes = unfinished_notes(runs, now);
  comparison.gate_failures = gate_failures(comparison.groups, problems, limits, now);
  return comparison;
}

}  // namespace tessera
