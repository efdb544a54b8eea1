// `tessera table NAME --runs DIR`: a table of the experiments, filled from recorded runs.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_command.h"
#include "core/error.h"
#include "core/host.h"
#include "core/log.h"
#include "core/output.h"
#include "core/text.h"
#include "record/find_runs.h"
#include "results/tables/experiment_table.h"

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
  schema.text("runs", &s.runs, "folders with runs, or above them; not given: only those of ROW=DIR", {.is_list = true});
  schema.text("catalogue", &s.catalogue, "folders with more experiments, besides ./experiments", {.is_list = true});
  schema.text("format", &s.format, "what to write", {.preset = "text", .choices = {"text", "md", "csv", "html"}});
  schema.text("output", &s.output, "a file to write instead of standard output", {.short_name = 'o'});
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

int run_table(Schema&, TableSettings& settings) {
  const Catalogue catalogue = open_catalogue(settings.catalogue);
  if (settings.words.empty()) {
    throw UsageError("expected: tessera table NAME --runs DIR; tables: " +
                     join(texts_of(catalogue.tables(), &TableSpec::name), ", "));
  }
  TableRequest request;
  request.name = settings.words.front();
  request.format = settings.format;
  if (settings.runs.empty() && settings.words.size() == 1) {
    // A wrong name is the worse mistake.
    find_table(request.name, catalogue.tables(), experiments_of(catalogue, {}));
    throw UsageError("give --runs DIR, a folder above the runs, or ROW=DIR for each row");
  }
  if (!settings.runs.empty()) request.runs = read_below(split(settings.runs, ','));
  request.named = named_runs(settings);
  write_output(experiment_table(request, catalogue), settings.output);
  return 0;
}

}  // namespace

Command table_command() {
  return with_settings<TableSettings>(
      {.name = "table", .summary = "a table of the experiments, filled from recorded runs", .has_rank = false}, declare,
      run_table);
}

}  // namespace tessera
