// `tessera runs ls|show|compare DIR...`: recorded runs, and what differs between them.
#include <fmt/format.h>

#include "cli/commands.h"
#include "core/error.h"
#include "core/host.h"
#include "core/json.h"
#include "core/log.h"
#include "core/output.h"
#include "core/text.h"
#include "record/find_runs.h"
#include "results/comparison.h"
#include "results/run_summary.h"

namespace tessera {
namespace {

struct RunsSettings {
  std::vector<std::string> words;
  std::string metric, max_slowdown, max_memory_growth;
  bool as_json = false;
};

void declare(Schema& schema, RunsSettings& s) {
  schema.positionals("ls|show|compare DIR...: folders of runs, or folders above them", &s.words);
  schema.group("compare");
  schema.text("metric", &s.metric, "compare only this figure: samples_per_second, train_loss, ...");
  schema.text("max_slowdown", &s.max_slowdown,
              "exit with 48 if samples/s fell by more than this against the first runs: 5%");
  schema.text("max_memory_growth", &s.max_memory_growth,
              "exit with 48 if the peak of memory grew by more than this: 5%");
  schema.group("Output");
  schema.boolean("json", &s.as_json, "print JSON: a list for ls, an object for show and compare");
}

void warn_of(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) log_warn("skipped: {}", problem);
}

int list_runs(const RunsSettings& s, const std::vector<std::string>& places) {
  const FoundRuns found = find_runs(places, RunDetail::kBrief);
  warn_of(found.problems);
  if (s.as_json) {
    print_out(json_text(run_list_json(found.runs, wall_seconds()), 2) + "\n");
  } else if (found.runs.empty()) {
    log_warn("no run.json below {}", join(places, ", "));
  } else {
    print_out(table_text(run_list(found.runs, wall_seconds())));
  }
  return 0;
}

int show_runs(const RunsSettings& s, const std::vector<std::string>& places) {
  const FoundRuns found = find_runs(places, RunDetail::kWhole);
  warn_of(found.problems);
  if (found.runs.empty()) throw UsageError(fmt::format("no readable run.json below {}", join(places, ", ")));
  if (found.runs.size() > places.size()) {
    throw UsageError(fmt::format("{} runs are below {}: name one; `tessera runs ls {}` lists them", found.runs.size(),
                                 join(places, ", "), join(places, " ")));
  }
  std::string text;
  Json list = Json::array();
  for (const RunRecord& run : found.runs) {
    text += (text.empty() ? "" : "\n") + run_summary_text(run, wall_seconds());
    list.push_back(run_summary_json(run, wall_seconds()));
  }
  print_out(s.as_json ? json_text(list.size() == 1 ? list.front() : list, 2) + "\n" : text);
  return 0;
}

int compare(const RunsSettings& s, const std::vector<std::string>& places) {
  GateLimits limits;
  if (!s.max_slowdown.empty()) limits.slowdown_percent = parse_percentage("max_slowdown", s.max_slowdown);
  if (!s.max_memory_growth.empty()) {
    limits.memory_growth_percent = parse_percentage("max_memory_growth", s.max_memory_growth);
  }
  std::vector<ComparedSide> sides;
  for (const std::string& place : places) {
    FoundRuns found = find_runs({place}, s.metric.empty() ? RunDetail::kBrief : RunDetail::kWhole);
    warn_of(found.problems);
    sides.push_back({place, std::move(found.runs), std::move(found.problems)});
  }
  const Comparison comparison = compare_runs(sides, s.metric, limits, wall_seconds());
  print_out(s.as_json ? json_text(comparison_json(comparison, limits), 2) + "\n" : comparison_text(comparison, limits));
  return static_cast<int>(comparison.gate_failures.empty() ? ExitStatus::kOk : ExitStatus::kRegression);
}

int run_runs(Schema& schema, RunsSettings& settings) {
  const std::string verb = settings.words.empty() ? "" : settings.words.front();
  const auto given = [&](const char* name) { return schema.at(name).is_set(); };
  if (verb != "compare" && (given("metric") || given("max_slowdown") || given("max_memory_growth"))) {
    throw UsageError("--metric, --max_slowdown and --max_memory_growth are options of `tessera runs compare`");
  }
  std::vector<std::string> places(settings.words.begin() + (settings.words.empty() ? 0 : 1), settings.words.end());
  if (verb == "ls") return list_runs(settings, places.empty() ? std::vector<std::string>{"."} : places);
  if (verb == "show" && !places.empty()) return show_runs(settings, places);
  if (verb == "compare" && !places.empty()) return compare(settings, places);
  throw UsageError("expected: tessera runs ls [DIR...], show DIR or compare DIR...; `tessera runs --help` shows more");
}

}  // namespace

Command runs_command() {
  return with_settings<RunsSettings>(
      {.name = "runs", .summary = "list, show and compare recorded runs", .has_rank = false}, declare, run_runs);
}

}  // namespace tessera
