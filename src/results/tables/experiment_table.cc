#include "results/tables/experiment_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/host.h"
#include "core/text.h"
#include "record/record_file.h"
#include "results/page/html.h"
#include "results/questions.h"
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

// Cells look into the history, which brief records do not have.
void read_whole(std::vector<ChosenRow>& rows) {
  for (ChosenRow& row : rows) {
    for (RunRecord& run : row.records) run = read_run_record(run.file);
  }
}

// Those of the table's rows, and all of the family of experiments that its last row is of: fsdp/bloom, deepspeed, ...
std::vector<Answer> answers_below(const TableSpec& spec, const ChosenRows& chosen, const std::vector<RunRecord>& runs,
                                  const std::vector<ModelSize>& models) {
  std::vector<RunRecord> of_rows, of_family;
  for (const ChosenRow& row : chosen.rows) of_rows.insert(of_rows.end(), row.records.begin(), row.records.end());
  const std::string family = chosen.rows.back().experiment->family + "/";
  for (const RunRecord& run : runs) {
    if (run.text("experiment").starts_with(family)) of_family.push_back(run);
  }
  return answer_table_questions(spec, of_rows, of_family, models);
}

std::string answer_list(const std::vector<Answer>& answers) {
  std::string list;
  for (const Answer& answer : answers) {
    list += fmt::format("<dt>{}</dt><dd>{}<br><small>{}</small></dd>\n", html_text(answer.question),
                        html_text(answer.said()), html_text(answer.arithmetic));
  }
  return list.empty() ? "" : "<dl>\n" + list + "</dl>\n";
}

// A page of its own.
std::string table_page(const Table& table, const std::vector<Answer>& answers) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n"
      "<style>body{{font-family:sans-serif}}table{{border-collapse:collapse}}th,td{{border:1px solid #999;"
      "padding:.2em .6em;text-align:left}}td.number{{text-align:right}}</style></head>\n<body>\n{}{}</body></html>\n",
      html_text(table.title), table_html(table), answer_list(answers));
}

}  // namespace

bool is_in_table(const ExperimentSpec& experiment, const std::vector<TableSpec>& tables) {
  return std::any_of(tables.begin(), tables.end(), [&](const TableSpec& table) {
    const auto names_it = [&](const std::string& folder) {
      return folder == experiment.name || folder == experiment.folder();
    };
    return table.baseline == experiment.name || std::any_of(table.folders.begin(), table.folders.end(), names_it);
  });
}

TableSpec find_table(const std::string& name, const std::vector<TableSpec>& tables,
                     const std::vector<ExperimentSpec>& experiments) {
  std::vector<std::string> names;
  for (const TableSpec& table : tables) {
    columns_of(table);  // a mistake in any of them is told
    if (table.name == name || table.name + "/" == name) return table;
    names.push_back(table.name);
  }
  if (std::optional<TableSpec> general = general_table(name, experiments)) return *std::move(general);
  for (const ExperimentSpec& experiment : experiments) {
    if (!is_in_table(experiment, tables)) add_once(names, experiment.family);
  }
  throw UsageError(fmt::format("no table '{}'{}; tables: {}", name, did_you_mean(name, names), join(names, ", ")));
}

std::optional<TableSpec> general_table(const std::string& name, const std::vector<ExperimentSpec>& all) {
  std::string folder = name;
  while (folder.ends_with('/')) folder.pop_back();
  std::vector<std::string> rows, baselines, notes;
  bool is_by_layers = false;
  for (const ExperimentSpec& experiment : all) {
    if (experiment.name != folder && !experiment.name.starts_with(folder + "/")) continue;
    rows.push_back(experiment.name);
    if (find_experiment(all, experiment.study.baseline) != nullptr) add_once(baselines, experiment.study.baseline);
    if (const std::string note = efficiency_note(experiment.study.kind); !note.empty()) add_once(notes, note);
    is_by_layers |= experiment.study.kind == StudyKind::kWeakByLayers;
  }
  if (rows.empty()) return std::nullopt;
  for (const std::string& row : rows) add_once(baselines, row);
  notes.push_back(
      "Samples/s Scale = current / baseline. Peak Memory: allocated by torch's allocator on the rank that has most; "
      "without a GPU, the memory of its process; 1 MB = 2^20 bytes.");
  TableSpec table;
  table.name = table.title = folder;
  table.folders = std::move(baselines);
  table.first_column = "Experiment";
  for (const char* column :
       {"setup", "total_gpus", "samples_per_second", "samples_scale", "runtime", "study_efficiency"}) {
    table.columns.push_back({column, std::nullopt, std::nullopt});
  }
  table.columns.push_back({"train_loss", "Loss", std::nullopt});
  table.columns.push_back({"peak_memory_MB", std::nullopt, std::nullopt});
  table.notes = std::move(notes);
  table.has_global_batch = is_by_layers;
  return table;
}

std::string experiment_table(const TableRequest& request, const Catalogue& catalogue) {
  const std::vector<ExperimentSpec> experiments = experiments_of(catalogue, request.runs);
  const TableSpec spec = find_table(request.name, catalogue.tables(), experiments);
  ChosenRows chosen = choose_rows(spec, experiments, request.runs, request.named, wall_seconds());
  read_whole(chosen.rows);
  read_whole(chosen.baselines);
  const Table table = fill_table(spec, chosen);
  if (request.format == "csv") return table_csv(table);
  const std::vector<Answer> answers = answers_below(spec, chosen, request.runs, catalogue.models());
  if (request.format == "html") return table_page(table, answers);
  const bool is_markdown = request.format == "md";
  const std::string below = answers.empty() ? "" : "\n" + answers_text(answers, is_markdown);
  return (is_markdown ? table_markdown(table) : table_text(table)) + below;
}

}  // namespace tessera
