#include <fmt/format.h>

#include <algorithm>

#include "cli/experiment_command.h"
#include "core/error.h"
#include "core/output.h"
#include "core/text.h"
#include "experiment/queue.h"
#include "experiment/standing.h"

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

}  // namespace tessera
