#include "report/tables/row_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "report/runs/figures.h"
#include "report/runs/find_runs.h"
#include "report/runs/run_status.h"

namespace tessera {
namespace {

std::string unfinished_reason(const RunRecord& run, double now) {
  return fmt::format("{} ({}, step {} of {})", status_with_reason(run, now), folder_text(run), steps_done(run),
                     run.total_steps);
}

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

ChosenRow choose_row(const TableDeclaration& table, const Experiment& experiment, const std::vector<RunRecord>& runs,
                     const std::vector<NamedRun>& named, double now) {
  ChosenRow row{&experiment, row_name(table, experiment), std::nullopt, "", ""};
  std::vector<const RunRecord*> candidates;
  for (const NamedRun& each : named) {
    if (each.row == row.name || each.row == experiment.name) candidates.push_back(&each.record);
  }
  if (candidates.empty()) {
    for (const RunRecord& run : runs) {
      if (run.text("experiment") == experiment.name) candidates.push_back(&run);
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const RunRecord* a, const RunRecord* b) { return a->started > b->started; });
  const auto finished =
      std::find_if(candidates.begin(), candidates.end(), [](const RunRecord* run) { return has_finished(*run); });
  if (candidates.empty()) {
    row.reason = fmt::format("no run of {} was found", experiment.name);
  } else if (finished == candidates.end()) {
    row.reason = unfinished_reason(*candidates.front(), now);
  } else {
    row.record = **finished;
    if (finished != candidates.begin()) {
      row.remark = "a newer run has not finished: " + unfinished_reason(*candidates.front(), now);
    } else if ((*finished)->status == "stopped_early") {
      row.remark = status_with_reason(**finished, now);
    }
  }
  return row;
}

void check_named_rows(const TableDeclaration& table, const ChosenRows& chosen, const std::vector<NamedRun>& named) {
  std::vector<std::string> names;
  for (const ChosenRow& row : chosen.rows) names.push_back(row.name);
  if (chosen.baseline) names.push_back(chosen.baseline->name);
  for (const NamedRun& each : named) {
    const bool is_full_name = each.row.find('/') != std::string::npos && find_experiment(each.row) != nullptr;
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

ChosenRows choose_rows(const TableDeclaration& table, const std::vector<RunRecord>& runs,
                       const std::vector<NamedRun>& named, double now) {
  ChosenRows chosen;
  if (const Experiment* baseline = find_experiment(table.baseline)) {
    chosen.baseline = choose_row(table, *baseline, runs, named, now);
    if (table.shows_baseline) chosen.rows.push_back(*chosen.baseline);
  }
  for (const std::string& folder : table.folders) {
    for (const Experiment* experiment : experiments_in(folder)) {
      chosen.rows.push_back(choose_row(table, *experiment, runs, named, now));
    }
  }
  check_named_rows(table, chosen, named);
  for (const RunRecord& run : runs) {
    if (run.text("experiment").empty()) chosen.unassigned.push_back(folder_text(run));
  }
  return chosen;
}

}  // namespace tessera
