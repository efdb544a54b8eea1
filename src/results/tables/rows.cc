#include "results/tables/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

std::string unfinished_reason(const RunRecord& run, double now) {
  return fmt::format("{} ({}, step {} of {})", status_with_reason(run, now), folder_text(run), steps_done(run),
                     run.total_steps);
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

ChosenRow choose_row(const TableSpec& table, const ExperimentSpec& experiment, const std::vector<RunRecord>& runs,
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

void check_named_rows(const TableSpec& table, const std::vector<ExperimentSpec>& experiments, const ChosenRows& chosen,
                      const std::vector<NamedRun>& named) {
  std::vector<std::string> names;
  for (const ChosenRow& row : chosen.rows) names.push_back(row.name);
  for (const ChosenRow& row : chosen.baselines) add_once(names, row.name);
  for (const NamedRun& each : named) {
    const bool is_full_name =
        each.row.find('/') != std::string::npos && find_experiment(experiments, each.row) != nullptr;
    if (is_full_name || std::find(names.begin(), names.end(), each.row) != names.end()) continue;
    throw UsageError(fmt::format("{} has no row '{}'{}; rows: {}", table.name, each.row, did_you_mean(each.row, names),
                                 join(names, ", ")));
  }
}

// A fact, or in a record of format 1 the setting of that name.
std::string fact_or_setting(const RunRecord& run, const std::string& name) {
  if (const std::string fact = fact_text(run, name); !fact.empty()) return fact;
  const RecordedSetting* setting = run.setting(name);
  return setting == nullptr ? "" : setting->value;
}

struct EqualTrait {
  std::string name;
  std::string (*of)(const RunRecord&);
};

std::vector<EqualTrait> traits_to_check(bool is_global) {
  const EqualTrait global_batch = {"global batch", [](const RunRecord& run) { return fact_text(run, "global_batch"); }};
  const EqualTrait batch = {"batch x accumulation per GPU", [](const RunRecord& run) {
                              const std::string rows = fact_text(run, "batch_size");
                              return rows.empty() ? "" : fmt::format("{} x {}", rows, fact_text(run, "accumulation"));
                            }};
  return {{"label mode", [](const RunRecord& run) { return fact_or_setting(run, "label_mode"); }},
          {"precision", precision_text},
          // The fact is what was decided; a record of format 1 has only the setting, which may be auto.
          {"merge_accumulation",
           [](const RunRecord& run) {
             const std::string merged = fact_or_setting(run, "merge_accumulation");
             return merged == "true" ? "on" : merged == "false" ? "off" : merged;
           }},
          is_global ? global_batch : batch,
          {"commit", [](const RunRecord& run) { return run.commit; }}};
}

std::string difference(const EqualTrait& trait, const ChosenRows& chosen) {
  std::map<std::string, std::vector<std::string>> rows_by_value;
  for (const ChosenRow& row : chosen.rows) {
    for (const RunRecord& run : row.records) {
      std::vector<std::string>& names = rows_by_value[trait.of(run)];
      if (names.empty() || names.back() != row.name) names.push_back(row.name);
    }
  }
  if (rows_by_value.size() < 2) return "";
  std::vector<std::string> parts;
  for (const auto& [value, rows] : rows_by_value) {
    parts.push_back(fmt::format("{} in {}", value.empty() ? "not recorded" : value, join(rows, ", ")));
  }
  return fmt::format("the {} differs between rows: {}", trait.name, join(parts, "; "));
}

// What a row's name promises and its run does not keep.
std::vector<std::string> broken_promises(const ChosenRow& row, const RunRecord& run) {
  std::vector<std::string> notes;
  const ExperimentSpec& experiment = *row.experiment;
  if (num_ranks(run) > 0 && (num_ranks(run) != experiment.num_gpus() || num_nodes(run) != experiment.nodes())) {
    notes.push_back(fmt::format("{}: the run has {} ranks on {} nodes; the experiment is meant for {} on {}", row.name,
                                num_ranks(run), num_nodes(run), experiment.num_gpus(), experiment.nodes()));
  }
  if (!experiment.name.starts_with("deepspeed/single_gpu/") &&
      experiment.name.find("/2_gpus_stages_comparison/") == std::string::npos) {
    return notes;
  }
  const bool should_offload = experiment.name.find("/cpu_offloading/") != std::string::npos;
  const bool should_pin = experiment.name.find("/pinned_memory/") != std::string::npos;
  if (run.facts.find("offload_optimizer") != nullptr && fact_is_true(run, "offload_optimizer") != should_offload) {
    notes.push_back(fmt::format("{}: the run was {} offload", row.name, should_offload ? "without" : "with"));
  } else if (should_offload && run.facts.find("pin_memory") != nullptr &&
             fact_is_true(run, "pin_memory") != should_pin) {
    notes.push_back(fmt::format("{}: the run's host memory was {}", row.name, should_pin ? "not pinned" : "pinned"));
  }
  return notes;
}

}  // namespace

std::vector<ExperimentSpec> experiments_of(const Catalogue& catalogue, const std::vector<RunRecord>& runs) {
  std::vector<ExperimentSpec> all;
  for (const ExperimentSpec& spec : catalogue.all()) {
    const std::string name = spec.repeat > 0 ? without_repeat(spec.name) : spec.name;
    if (find_experiment(all, name) != nullptr) continue;
    ExperimentSpec& added = all.emplace_back(spec);
    added.name = name;
    added.study.baseline = without_repeat(spec.study.baseline);
  }
  for (const RunRecord& run : runs) {
    const std::string name = without_repeat(run.text("experiment"));
    if (name.empty() || find_experiment(all, name) != nullptr) continue;
    ExperimentSpec& added = all.emplace_back();
    added.name = name;
    added.family = added.folder();
    const int nodes = std::max(1, num_nodes(run));
    added.resources.set("nodes", std::to_string(nodes), name);
    added.resources.set("gpus_per_node", std::to_string(std::max(1, num_ranks(run) / nodes)), name);
  }
  return all;
}

const ExperimentSpec* find_experiment(const std::vector<ExperimentSpec>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const ExperimentSpec& experiment) { return experiment.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<const ExperimentSpec*> experiments_in(const std::vector<ExperimentSpec>& all, const std::string& folder) {
  if (const ExperimentSpec* one = find_experiment(all, folder)) return {one};
  std::vector<const ExperimentSpec*> children;
  for (const ExperimentSpec& experiment : all) {
    if (experiment.folder() == folder) children.push_back(&experiment);
  }
  return children;
}

std::string without_repeat(const std::string& name) {
  const std::size_t slash = name.rfind("/repeat_");
  if (slash == std::string::npos || slash == 0) return name;
  const std::string number = name.substr(slash + std::string("/repeat_").size());
  const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? name.substr(0, slash) : name;
}

std::string setup_text(const ExperimentSpec& experiment, const RunRecord* run) {
  int nodes = experiment.nodes(), gpus = experiment.num_gpus();
  if (run != nullptr && num_ranks(*run) > 0) {
    nodes = std::max(1, num_nodes(*run));
    gpus = num_ranks(*run);
  }
  if (gpus % nodes != 0) return fmt::format("{}, {}", counted(nodes, "node"), counted(gpus, "GPU"));
  return fmt::format("{} x {}", counted(nodes, "node"), counted(gpus / nodes, "GPU"));
}

std::string row_name(const TableSpec& table, const ExperimentSpec& experiment) {
  if (experiment.name.starts_with(table.name + "/")) return experiment.name.substr(table.name.size() + 1);
  return experiment.name.substr(experiment.name.rfind('/') + 1);
}

std::string baseline_of(const TableSpec& table, const ExperimentSpec& experiment) {
  return table.baseline.empty() ? experiment.study.baseline : table.baseline;
}

ChosenRows choose_rows(const TableSpec& table, const std::vector<ExperimentSpec>& experiments,
                       const std::vector<RunRecord>& runs, const std::vector<NamedRun>& named, double now) {
  ChosenRows chosen;
  std::vector<const ExperimentSpec*> of_rows;
  if (const ExperimentSpec* shown = table.shows_baseline ? find_experiment(experiments, table.baseline) : nullptr) {
    of_rows.push_back(shown);
  }
  for (const std::string& folder : table.folders) {
    const std::vector<const ExperimentSpec*> children = experiments_in(experiments, folder);
    of_rows.insert(of_rows.end(), children.begin(), children.end());
  }
  std::set<std::string> baselines;
  for (const ExperimentSpec* experiment : of_rows) {
    chosen.rows.push_back(choose_row(table, *experiment, runs, named, now));
    const ExperimentSpec* baseline = find_experiment(experiments, baseline_of(table, *experiment));
    if (baseline == nullptr || !baselines.insert(baseline->name).second) continue;
    chosen.baselines.push_back(choose_row(table, *baseline, runs, named, now));
  }
  check_named_rows(table, experiments, chosen, named);
  for (const RunRecord& run : runs) {
    if (run.text("experiment").empty()) chosen.unassigned.push_back(folder_text(run));
  }
  return chosen;
}

std::vector<std::string> unequal_row_notes(const TableSpec& table, const ChosenRows& chosen) {
  std::vector<std::string> notes;
  for (const EqualTrait& trait : traits_to_check(table.has_global_batch)) {
    if (const std::string note = difference(trait, chosen); !note.empty()) notes.push_back(note);
  }
  for (const ChosenRow& row : chosen.rows) {
    for (const RunRecord& run : row.records) {
      for (const std::string& note : broken_promises(row, run)) {
        add_once(notes, note);
      }
    }
  }
  return notes;
}

}  // namespace tessera
