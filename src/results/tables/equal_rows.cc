#include "results/tables/equal_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/text.h"
#include "record/figures.h"

namespace tessera {
namespace {

// A fact, or in a record of format 1 the setting of that name.
std::string fact_or_setting(const RunRecord& run, const std::string& name) {
  if (const std::string fact = fact_text(run, name); !fact.empty()) return fact;
  const RecordedSetting* setting = run.setting(name);
  return setting == nullptr ? "" : setting->value;
}

// The fact is what was decided; a record of format 1 has only the setting, which may be auto.
std::string merge_text(const RunRecord& run) {
  const std::string merged = fact_or_setting(run, "merge_accumulation");
  return merged == "true" ? "on" : merged == "false" ? "off" : merged;
}

std::string batch_text(const RunRecord& run, BatchRule rule) {
  if (rule == BatchRule::kGlobal) return fact_text(run, "global_batch");
  const std::string batch = fact_text(run, "batch_size"), accumulation = fact_text(run, "accumulation");
  return batch.empty() ? "" : fmt::format("{} x {}", batch, accumulation);
}

struct EqualTrait {
  std::string name;
  std::function<std::string(const RunRecord&)> of;
};

std::vector<EqualTrait> traits_to_check(BatchRule rule) {
  return {{"label mode", [](const RunRecord& run) { return fact_or_setting(run, "label_mode"); }},
          {"precision", precision_text},
          {"merge_accumulation", merge_text},
          {rule == BatchRule::kGlobal ? "global batch" : "batch x accumulation per GPU",
           [rule](const RunRecord& run) { return batch_text(run, rule); }},
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
  const Experiment& experiment = *row.experiment;
  if (num_ranks(run) > 0 && (num_ranks(run) != experiment.num_gpus() || num_nodes(run) != experiment.nodes)) {
    notes.push_back(fmt::format("{}: the run has {} ranks on {} nodes; the experiment is meant for {} on {}", row.name,
                                num_ranks(run), num_nodes(run), experiment.num_gpus(), experiment.nodes));
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

std::vector<std::string> unequal_row_notes(const TableDeclaration& table, const ChosenRows& chosen) {
  std::vector<std::string> notes;
  for (const EqualTrait& trait : traits_to_check(table.batch_rule)) {
    if (const std::string note = difference(trait, chosen); !note.empty()) notes.push_back(note);
  }
  for (const ChosenRow& row : chosen.rows) {
    for (const RunRecord& run : row.records) {
      for (const std::string& note : broken_promises(row, run)) {
        if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
      }
    }
  }
  return notes;
}

}  // namespace tessera
