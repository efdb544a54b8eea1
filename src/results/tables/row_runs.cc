#include "results/tables/row_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "record/figures.h"
#include "record/find_runs.h"
#include "record/run_status.h"

namespace tessera {
namespace {

std::string unfinished_reason(const RunRecord& run, double now) {
  return fmt::format("{} ({}, step {} of {})", status_with_reason(run, now), folder_text(run), steps_done(run),
                     run.total_steps);
}

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

using Candidates = std::vector<const RunRecord*>;

// Those that a user named for the row, or else by their experiment's name. Repeats are told apart by that name.
std::map<std::string, Candidates> candidates_of(const ChosenRow& row, const std::vector<RunRecord>& runs,
                                                const std::vector<NamedRun>& named) {
  std::map<std::string, Candidates> by_name;
  for (const NamedRun& each : named) {
    if (each.row == row.name || each.row == row.experiment->name) by_name[row.name].push_back(&each.record);
  }
  if (!by_name.empty()) return by_name;
  for (const RunRecord& run : runs) {
    const std::string name = run.text("experiment");
    if (without_repeat(name) == row.experiment->name) by_name[name].push_back(&run);
  }
  return by_name;
}

// The newest finished run, with what is to be said about newer ones; or why there is none.
void add_newest(Candidates candidates, double now, ChosenRow& row) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const RunRecord* a, const RunRecord* b) { return a->started > b->started; });
  const auto finished =
      std::find_if(candidates.begin(), candidates.end(), [](const RunRecord* run) { return has_finished(*run); });
  if (finished == candidates.end()) {
    row.reason = unfinished_reason(*candidates.front(), now);
    return;
  }
  row.records.push_back(**finished);
  std::string remark;
  if (finished != candidates.begin()) {
    remark = "a newer run has not finished: " + unfinished_reason(*candidates.front(), now);
  } else if ((*finished)->status == "stopped_early") {
    remark = status_with_reason(**finished, now);
  }
  if (!remark.empty()) row.remark += (row.remark.empty() ? "" : "; ") + remark;
}

ChosenRow choose_row(const TableDeclaration& table, const Experiment& experiment, const std::vector<RunRecord>& runs,
                     const std::vector<NamedRun>& named, double now) {
  ChosenRow row{&experiment, row_name(table, experiment), {}, "", ""};
  const std::map<std::string, Candidates> by_name = candidates_of(row, runs, named);
  if (by_name.empty()) row.reason = fmt::format("no run of {} was found", experiment.name);
  for (const auto& [name, candidates] : by_name) add_newest(candidates, now, row);
  if (by_name.size() > 1 && row.records.size() < by_name.size() && !row.records.empty()) {
    row.remark +=
        fmt::format("{}{} of {} repeats finished", row.remark.empty() ? "" : "; ", row.records.size(), by_name.size());
  }
  return row;
}

void check_named_rows(const TableDeclaration& table, const std::vector<Experiment>& experiments,
                      const ChosenRows& chosen, const std::vector<NamedRun>& named) {
  std::vector<std::string> names;
  for (const ChosenRow& row : chosen.rows) names.push_back(row.name);
  for (const ChosenRow& row : chosen.baselines) {
    if (std::find(names.begin(), names.end(), row.name) == names.end()) names.push_back(row.name);
  }
  for (const NamedRun& each : named) {
    const bool is_full_name =
        each.row.find('/') != std::string::npos && find_experiment(experiments, each.row) != nullptr;
    if (is_full_name || std::find(names.begin(), names.end(), each.row) != names.end()) continue;
    const std::optional<std::string> meant = nearest(each.row, names);
    throw UsageError(fmt::format("{} has no row '{}'{}; rows: {}", table.name, each.row,
                                 meant ? fmt::format(", did you mean '{}'?", *meant) : "", join(names, ", ")));
  }
}

}  // namespace

std::string row_name(const TableDeclaration& table, const Experiment& experiment) {
  if (experiment.name.starts_with(table.name + "/")) return experiment.name.substr(table.name.size() + 1);
  return last_part(experiment.name);
}

std::string baseline_of(const TableDeclaration& table, const Experiment& experiment) {
  return table.baseline.empty() ? experiment.study.baseline : table.baseline;
}

ChosenRows choose_rows(const TableDeclaration& table, const std::vector<Experiment>& experiments,
                       const std::vector<RunRecord>& runs, const std::vector<NamedRun>& named, double now) {
  ChosenRows chosen;
  std::vector<const Experiment*> of_rows;
  if (const Experiment* shown = table.shows_baseline ? find_experiment(experiments, table.baseline) : nullptr) {
    of_rows.push_back(shown);
  }
  for (const std::string& folder : table.folders) {
    const std::vector<const Experiment*> children = experiments_in(experiments, folder);
    of_rows.insert(of_rows.end(), children.begin(), children.end());
  }
  std::set<std::string> baselines;
  for (const Experiment* experiment : of_rows) {
    chosen.rows.push_back(choose_row(table, *experiment, runs, named, now));
    const Experiment* baseline = find_experiment(experiments, baseline_of(table, *experiment));
    if (baseline == nullptr || !baselines.insert(baseline->name).second) continue;
    chosen.baselines.push_back(choose_row(table, *baseline, runs, named, now));
  }
  check_named_rows(table, experiments, chosen, named);
  for (const RunRecord& run : runs) {
    if (run.text("experiment").empty()) chosen.unassigned.push_back(folder_text(run));
  }
  return chosen;
}

}  // namespace tessera
