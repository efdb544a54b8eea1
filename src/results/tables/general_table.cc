#include "results/tables/general_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "results/tables/columns.h"

namespace tessera {
namespace {

std::string efficiency_note(StudyKind kind) {
  switch (kind) {
    case StudyKind::kStrong:
      return "Efficiency, strong scaling: (baseline runtime / runtime) / (GPUs / baseline GPUs) x 100, for equally "
             "many "
             "rows of data.";
    case StudyKind::kWeakByData:
      return "Efficiency, weak scaling by data: baseline runtime / runtime x 100, for equally many rows of data per "
             "GPU.";
    case StudyKind::kWeakByLayers:
      return "Efficiency, weak scaling by layers: baseline runtime / runtime x 100, for equally many rows of data.";
    case StudyKind::kThroughput:
      return "Efficiency, throughput: (samples/s / baseline samples/s) / (GPUs / baseline GPUs) x 100.";
    case StudyKind::kNone:
      break;
  }
  return "";
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

}  // namespace

std::optional<TableDeclaration> general_table(const std::string& name, const std::vector<Experiment>& all) {
  std::string folder = name;
  while (folder.ends_with('/')) folder.pop_back();
  std::vector<std::string> rows, baselines, notes;
  bool is_by_layers = false;
  for (const Experiment& experiment : all) {
    if (experiment.name != folder && !experiment.name.starts_with(folder + "/")) continue;
    rows.push_back(experiment.name);
    if (find_experiment(all, experiment.study.baseline) != nullptr) add_once(baselines, experiment.study.baseline);
    add_once(notes, efficiency_note(experiment.study.kind));
    is_by_layers |= experiment.study.kind == StudyKind::kWeakByLayers;
  }
  if (rows.empty()) return std::nullopt;
  for (const std::string& row : rows) add_once(baselines, row);
  notes.push_back(
      "Samples/s Scale = current / baseline. Peak Memory: allocated by torch's allocator on the rank that has most; "
      "without a GPU, the memory of its process; 1 MB = 2^20 bytes.");
  return TableDeclaration{.name = folder,
                          .title = folder,
                          .folders = std::move(baselines),
                          .baseline = "",
                          .first_column = "Experiment",
                          .columns = {columns::setup(), columns::total_gpus(), columns::samples_per_second(),
                                      columns::samples_scale(), columns::runtime(), columns::study_efficiency(),
                                      columns::any_train_loss(), columns::peak_memory_MB()},
                          .notes = std::move(notes),
                          .batch_rule = is_by_layers ? BatchRule::kGlobal : BatchRule::kPerGpu};
}

}  // namespace tessera
