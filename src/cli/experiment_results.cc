#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_command.h"
#include "cli/report.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "core/text.h"
#include "experiment/collect.h"
#include "experiment/standing.h"

namespace tessera {
namespace {

std::string reason_of(const RunStanding& state) {
  return state.words + (state.advice.empty() ? "" : ": " + state.advice);
}

// The newest runs that failed, also those that left no record, which no table can name.
std::string failures_text(const ExperimentCommand& command) {
  std::string text;
  for (const RunStanding& state : standings_of(command.runs, newest_of(stored_of(command)))) {
    if (state.stage == RunStage::kFailed) text += fmt::format("{}: {}\n", state.run.experiment, reason_of(state));
  }
  return text;
}

// Runs that failed before they could leave a record: a page would not have them.
std::vector<UnrecordedRun> unrecorded_of(const ExperimentCommand& command, const std::vector<StoredRun>& stored) {
  std::vector<UnrecordedRun> runs;
  for (const RunStanding& state : standings_of(command.runs, stored)) {
    std::error_code none;
    if (state.stage != RunStage::kFailed || std::filesystem::exists(output_of(state.run) / "run.json", none)) continue;
    runs.push_back({fmt::format("{} {:03}", state.run.experiment, state.run.number), reason_of(state)});
  }
  return runs;
}

// Where a table finds the runs: the folder, or single runs in it where it has other users' too.
std::vector<std::string> places_of(const ExperimentCommand& command) {
  ExperimentCommand every = command;
  every.words.resize(1);  // a baseline may be of another name
  const std::vector<StoredRun> chosen = stored_of(every);
  every.user = "all";
  if (chosen.size() == stored_of(every).size()) return {command.runs};
  std::vector<std::string> folders;
  for (const StoredRun& run : chosen) folders.push_back(run.folder.string());
  return folders;
}

std::string one_name(const ExperimentCommand& command) {
  if (command.names().size() != 1) {
    throw UsageError("expected: tessera experiment table NAME, such as deepspeed/multi_gpu");
  }
  return command.names().front();
}

}  // namespace

int table_of_experiments(const ExperimentCommand& command) {
  std::vector<std::string> words = {one_name(command), "--runs", join(places_of(command), ","), "--format",
                                    command.format};
  if (!command.catalogue.empty()) words.insert(words.end(), {"--catalogue", command.catalogue});
  if (!command.output.empty()) words.insert(words.end(), {"-o", command.output});
  const int status = table_command().run(words);
  const std::string failures = failures_text(command);
  if (!failures.empty() && command.format == "text" && command.output.empty()) print_out("\nfailed:\n" + failures);
  return status;
}

int report_experiments(const ExperimentCommand& command) {
  const std::vector<StoredRun> stored = stored_of(command);
  if (stored.empty()) throw UsageError(fmt::format("no run of these experiments is in {}", command.runs));
  ReportRequest request{{}, command.output.empty() ? "report.html" : command.output, "Experiments"};
  if (command.names().empty()) {
    request.folders = places_of(command);
  } else {
    for (const StoredRun& run : stored) request.folders.push_back(run.folder.string());
  }
  request.unrecorded = unrecorded_of(command, stored);
  return write_report(request);
}

int collect_experiments(const ExperimentCommand& command) {
  const std::vector<StoredRun> stored = stored_of(command);
  if (stored.empty()) throw UsageError(fmt::format("no run of these experiments is in {}", command.runs));
  const std::filesystem::path target = command.output.empty() ? "collected" : command.output;
  collect(stored, target);
  write_file_atomically(target / "failed.txt", failures_text(command));
  print_out(fmt::format("{}: {} runs\n", target.string(), stored.size()));
  return write_report(
      {{target.string()}, (target / "report.html").string(), "Experiments", unrecorded_of(command, stored)});
}

}  // namespace tessera
