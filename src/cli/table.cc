// `tessera table NAME --runs DIR`: a table of the experiments, filled from recorded runs.
#include <fmt/format.h>

#include "cli/commands.h"
#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/log.h"
#include "core/output.h"
#include "core/text.h"
#include "experiment/table_experiments.h"
#include "record/find_runs.h"
#include "results/questions.h"
#include "results/tables/fill_table.h"
#include "results/tables/table_page.h"

namespace tessera {
namespace {

struct TableSettings {
  std::vector<std::string> words;
  std::string runs, catalogue, format, output;
};

void declare(Schema& schema, TableSettings& s) {
  schema.positionals(
      "NAME [ROW=DIR...]: a folder of experiments, such as deepspeed/multi_gpu, or a family of your own, and runs for "
      "its rows",
      &s.words);
  schema.text("runs", &s.runs).list().help("folders with runs, or above them; not given: only those of ROW=DIR");
  schema.text("catalogue", &s.catalogue).list().help("folders with more experiments, besides ./experiments");
  schema.text("format", &s.format).preset("text").choices({"text", "md", "csv", "html"}).help("what to write");
  schema.text("output", &s.output).short_name('o').help("a file to write instead of standard output");
}

std::vector<RunRecord> read_below(const std::vector<std::string>& places) {
  FoundRuns found = find_runs(places, RunDetail::kBrief);
  for (const std::string& problem : found.problems) log_warn("skipped: {}", problem);
  return std::move(found.runs);
}

std::vector<NamedRun> named_runs(const TableSettings& s) {
  std::vector<NamedRun> named;
  for (std::size_t i = 1; i < s.words.size(); ++i) {
    const std::size_t equals = s.words[i].find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(fmt::format("'{}': expected ROW=DIR, such as 2_gpus=out/run2", s.words[i]));
    }
    const std::string folder = s.words[i].substr(equals + 1);
    std::vector<RunRecord> runs = read_below({folder});
    if (runs.size() != 1) {
      throw UsageError(fmt::format("{}: {} below {}; name the folder of one run", s.words[i],
                                   runs.empty() ? "no readable run.json" : fmt::format("{} runs", runs.size()),
                                   folder));
    }
    named.push_back({s.words[i].substr(0, equals), std::move(runs.front())});
  }
  return named;
}

std::vector<Experiment> known_experiments(const TableSettings& s) {
  CatalogueOptions options;
  if (!s.catalogue.empty()) {
    for (const std::string& folder : split(s.catalogue, ',')) options.folders.emplace_back(folder);
  }
  return table_experiments(Catalogue(options));
}

// Cells look into the history, which brief records do not have.
void read_whole(std::vector<ChosenRow>& rows) {
  for (ChosenRow& row : rows) {
    for (RunRecord& run : row.records) run = read_run_record(run.file);
  }
}

std::vector<RunRecord> records_of(const ChosenRows& chosen) {
  std::vector<RunRecord> records;
  for (const ChosenRow& row : chosen.rows) records.insert(records.end(), row.records.begin(), row.records.end());
  return records;
}

// Those of the family of experiments that the table's last row is of: fsdp/bloom, fsdp/custom_model, deepspeed, ddp.
std::vector<RunRecord> family_of(const ChosenRows& chosen, const std::vector<RunRecord>& runs) {
  std::vector<RunRecord> members;
  for (const RunRecord& run : runs) {
    if (run.text("experiment").starts_with(chosen.rows.back().experiment->family + "/")) members.push_back(run);
  }
  return members;
}

std::string rendered(const std::string& format, const Table& table, const std::vector<Answer>& answers) {
  if (format == "csv") return table_csv(table);
  if (format == "html") return table_page(table, answers);
  const std::string below = answers.empty() ? "" : "\n" + answers_text(answers, format == "md");
  return (format == "md" ? table_markdown(table) : table_text(table)) + below;
}

int run_table(Schema&, TableSettings& settings) {
  if (settings.words.empty()) {
    std::vector<std::string> names;
    for (const TableDeclaration& table : declared_tables()) names.push_back(table.name);
    throw UsageError("expected: tessera table NAME --runs DIR; tables: " + join(names, ", "));
  }
  if (settings.runs.empty() && settings.words.size() == 1) {
    find_table(settings.words.front(), known_experiments(settings));  // a wrong name is the worse mistake
    throw UsageError("give --runs DIR, a folder above the runs, or ROW=DIR for each row");
  }
  const std::vector<RunRecord> runs =
      settings.runs.empty() ? std::vector<RunRecord>() : read_below(split(settings.runs, ','));
  const std::vector<Experiment> experiments = with_experiments_of(runs, known_experiments(settings));
  const TableDeclaration declaration = find_table(settings.words.front(), experiments);
  ChosenRows chosen = choose_rows(declaration, experiments, runs, named_runs(settings), wall_seconds());
  read_whole(chosen.rows);
  read_whole(chosen.baselines);
  const Table table = fill_table(declaration, chosen);
  const std::string text = rendered(
      settings.format, table, answer_table_questions(declaration.name, records_of(chosen), family_of(chosen, runs)));
  if (settings.output.empty()) {
    print_out(text);
  } else {
    write_file_atomically(settings.output, text);
  }
  return 0;
}

}  // namespace

Command table_command() {
  return with_settings<TableSettings>(
      {.name = "table", .summary = "a table of the experiments, filled from recorded runs", .has_rank = false}, declare,
      run_table);
}

}  // namespace tessera
