// The verbs about runs that were started: status, cancel, and what became of them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/commands.h"
#include "cli/experiment_command.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/output.h"
#include "core/text.h"
#include "experiment/queue.h"
#include "experiment/run_folder.h"
#include "experiment/standing.h"
#include "record/find_runs.h"
#include "results/page/page.h"
#include "results/tables/experiment_table.h"

namespace tessera {
namespace {

const char* stage_name(RunStage stage) {
  constexpr const char* names[] = {"waiting", "running", "finished", "failed"};
  return names[static_cast<std::size_t>(stage)];
}

Json state_json(const RunStanding& state) {
  Json json = {{"experiment", state.run.experiment},
               {"folder", state.run.folder.string()},
               {"user", state.run.user},
               {"stage", stage_name(state.stage)},
               {"words", state.words}};
  if (state.run.job_id) json["job_id"] = *state.run.job_id;
  if (state.run.exit_status) json["exit_status"] = *state.run.exit_status;
  return json;
}

std::vector<StoredRun> named_runs_of(const ExperimentCommand& command) {
  std::vector<StoredRun> stored = stored_of(command);
  if (!command.all) stored = newest_of(stored);
  if (stored.empty()) {
    throw UsageError(fmt::format("no run of {} is in {}; --runs names another folder",
                                 command.names().empty() ? "any experiment" : join(command.names(), ", "),
                                 command.runs));
  }
  return stored;
}

std::string reason_of(const RunStanding& state) {
  return state.words + (state.advice.empty() ? "" : ": " + state.advice);
}

// The newest runs that failed, also those that left no record, which no table can name.
std::string failures_text(const ExperimentCommand& command, const std::vector<StoredRun>& stored) {
  std::string text;
  for (const RunStanding& state : standings_of(command.runs, newest_of(stored))) {
    if (state.stage == RunStage::kFailed) text += fmt::format("{}: {}\n", state.run.experiment, reason_of(state));
  }
  return text;
}

// Runs that failed before they could leave a record: a page would not have them.
std::vector<UnrecordedRun> unrecorded_of(const ExperimentCommand& command, const std::vector<StoredRun>& stored) {
  std::vector<UnrecordedRun> runs;
  for (const RunStanding& state : standings_of(command.runs, stored)) {
    if (state.stage != RunStage::kFailed || is_there(output_of(state.run) / "run.json")) continue;
    runs.push_back({fmt::format("{} {:03}", state.run.experiment, state.run.number), reason_of(state)});
  }
  return runs;
}

// The records in the runs' folder; where it has other users' runs too, only those of the chosen runs.
std::vector<std::filesystem::path> records_of(const RunsFolder& folder, const std::vector<StoredRun>& chosen) {
  if (chosen.size() == folder.stored.size()) return folder.records;
  std::set<std::filesystem::path> folders;
  for (const StoredRun& run : chosen) folders.insert(run.folder);
  std::vector<std::filesystem::path> records;
  for (const std::filesystem::path& record : folder.records) {
    for (std::filesystem::path above = record.parent_path(); above != above.parent_path();
         above = above.parent_path()) {
      if (!folders.contains(above)) continue;
      records.push_back(record);
      break;
    }
  }
  return records;
}

}  // namespace

int status_of_experiments(const ExperimentCommand& command) {
  const std::vector<RunStanding> states = standings_of(command.runs, named_runs_of(command));
  std::size_t width = 0;
  for (const RunStanding& state : states) width = std::max(width, state.run.experiment.size());
  const bool names_users = !command.user.empty();
  std::string text;
  Json list = Json::array();
  std::array<int, 4> counts{};
  for (const RunStanding& state : states) {
    ++counts[static_cast<std::size_t>(state.stage)];
    text += fmt::format("{:<{}}  {:03}  {}{:<8}  {:<8}  {}{}\n", state.run.experiment, width, state.run.number,
                        names_users ? fmt::format("{:<10}  ", state.run.user) : "", state.run.job_id.value_or("here"),
                        stage_name(state.stage), state.stage == RunStage::kFinished ? "" : state.words,
                        state.advice.empty() ? "" : ": " + state.advice);
    list.push_back(state_json(state));
  }
  text += fmt::format("{} waiting, {} running, {} finished, {} failed\n", counts[0], counts[1], counts[2], counts[3]);
  print_out(command.as_json ? json_text(list, 2) + "\n" : text);
  return 0;
}

int cancel_experiments(const ExperimentCommand& command) {
  if (command.names().empty()) throw UsageError("expected: tessera experiment cancel NAME...; '*' means all");
  std::vector<std::string> ids;
  std::string text;
  forget_answer(command.runs);
  for (const RunStanding& state : standings_of(command.runs, stored_of(command))) {
    if (!state.run.job_id || (state.stage != RunStage::kWaiting && state.stage != RunStage::kRunning)) continue;
    ids.push_back(*state.run.job_id);
    text += fmt::format("job {}  {}\n", *state.run.job_id, state.run.experiment);
  }
  forget_answer(command.runs);
  cancel_jobs(ids);
  print_out(ids.empty() ? "no job is waiting or running\n" : text + fmt::format("{} cancelled\n", ids.size()));
  return 0;
}

int table_of_experiments(const ExperimentCommand& command) {
  if (command.names().size() != 1) {
    throw UsageError("expected: tessera experiment table NAME, such as deepspeed/multi_gpu");
  }
  TableRequest request;
  request.name = command.names().front();
  request.format = command.format;
  if (!std::filesystem::is_directory(command.runs)) {
    throw UsageError(fmt::format("{}: no such folder; --runs names the one above the runs", command.runs));
  }
  const RunsFolder folder = read_runs_folder(command.runs);
  // All of the user's runs: a baseline may be of another name.
  FoundRuns found = read_runs(records_of(folder, chosen_of(command, folder, {})), RunDetail::kBrief);
  for (const std::string& problem : found.problems) log_warn("skipped: {}", problem);
  request.runs = std::move(found.runs);
  write_output(experiment_table(request, catalogue_of(command)), command.output);
  const std::string failures = failures_text(command, chosen_of(command, folder, command.names()));
  if (!failures.empty() && command.format == "text" && command.output.empty()) print_out("\nfailed:\n" + failures);
  return 0;
}

int report_experiments(const ExperimentCommand& command) {
  const RunsFolder folder = read_runs_folder(command.runs);
  const std::vector<StoredRun> stored = chosen_of(command, folder, command.names());
  if (stored.empty()) throw UsageError(fmt::format("no run of these experiments is in {}", command.runs));
  ReportRequest request{{}, command.output.empty() ? "report.html" : command.output, "Experiments"};
  if (command.names().empty() && stored.size() == folder.stored.size()) {
    request.folders = {command.runs};
  } else {
    for (const StoredRun& run : stored) request.folders.push_back(run.folder.string());
  }
  return write_report(request, unrecorded_of(command, stored));
}

int collect_experiments(const ExperimentCommand& command) {
  const std::vector<StoredRun> stored = stored_of(command);
  if (stored.empty()) throw UsageError(fmt::format("no run of these experiments is in {}", command.runs));
  const std::filesystem::path target = command.output.empty() ? "collected" : command.output;
  collect(stored, target);
  write_file_atomically(target / "failed.txt", failures_text(command, stored));
  print_out(fmt::format("{}: {} runs\n", target.string(), stored.size()));
  return write_report({{target.string()}, (target / "report.html").string(), "Experiments"},
                      unrecorded_of(command, stored));
}

}  // namespace tessera
