#include <fmt/format.h>

#include <filesystem>

#include "cli/experiment_command.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/log.h"
#include "core/output.h"
#include "experiment/standing.h"
#include "experiment/submit.h"
#include "jobs/jobs.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

SubmitOptions submit_options(const ExperimentCommand& command) {
  SubmitOptions options;
  options.runs = command.runs;
  options.site = site_of(command);
  options.program = this_program();
  options.script.syncs_wandb = command.wandb_sync;
  options.max_parallel = command.max_parallel;
  options.baseline_first = command.baseline_first;
  return options;
}

int submit_all(std::vector<ResolvedExperiment> experiments, const ExperimentCommand& command) {
  const SubmitOptions options = submit_options(command);
  for (const ResolvedExperiment& experiment : experiments) check_fits(experiment, options.site);
  if (command.dry_run) {
    for (const ResolvedExperiment& experiment : experiments) {
      if (!experiment.missing.empty()) log_warn("{} cannot be submitted yet: {}", experiment.name, experiment.missing);
      const fs::path folder = fs::absolute(options.runs / experiment.name / "NNN");
      print_out(job_script(experiment, options.site, options.program, folder, options.script));
    }
    return 0;
  }
  submit(std::move(experiments), options, [](const Submitted& each) {
    print_out(fmt::format("job {}  {}  {}\n", each.job_id, each.experiment, each.folder.string()));
  });
  return 0;
}

}  // namespace

int submit_experiments(const ExperimentCommand& command) {
  return submit_all(resolved_of(command, catalogue_of(command)), command);
}

int rerun_experiments(const ExperimentCommand& command) {
  if (!command.settings.empty() || !command.resources.empty() || command.chooses_variant) {
    throw UsageError("rerun repeats what was asked for; `tessera experiment submit` takes other settings");
  }
  if (command.names().empty() && !command.failed) {
    throw UsageError("expected: tessera experiment rerun NAME... or --failed");
  }
  std::vector<ResolvedExperiment> again;
  int num_left_alone = 0;
  for (const RunStanding& state : standings_of(command.runs, newest_of(stored_of(command)))) {
    if (command.failed && state.stage != RunStage::kFailed) continue;
    if (!state.run.job_id) {
      log_warn("{} is left alone: it ran here, not on Slurm; `tessera experiment run` runs it again",
               state.run.experiment);
      ++num_left_alone;
      continue;
    }
    if (state.stage == RunStage::kWaiting || (state.stage == RunStage::kRunning && state.run.job_id)) {
      log_warn("{} is left alone: {}", state.run.experiment, state.words);
      ++num_left_alone;
      continue;
    }
    again.push_back(asked_again(state.run));
    try {
      look_for_data(again.back(), job_traits(), Environment::of_process());
    } catch (const Error& error) {
      throw error.in_context(state.run.experiment);
    }
    for (const auto& [name, given] : command.gate) again.back().gate.set(name, given.text, given.origin);
  }
  if (again.empty()) {
    print_out(num_left_alone > 0 ? "nothing is submitted\n"
              : command.failed   ? "no run has failed\n"
                                 : "there is nothing to run again\n");
    return 0;
  }
  return submit_all(std::move(again), command);
}

}  // namespace tessera
