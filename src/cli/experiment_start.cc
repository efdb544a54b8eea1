// The verbs that show, start and prepare experiments.
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "cli/experiment_command.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/output.h"
#include "core/text.h"
#include "experiment/queue.h"
#include "experiment/resolved.h"
#include "experiment/run_folder.h"
#include "experiment/scripts.h"
#include "experiment/site.h"
#include "experiment/standing.h"
#include "jobs/jobs.h"
#include "launch/monitored_command.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScript = "run.sh";

int run_one(const ExperimentCommand& command, const ResolvedExperiment& experiment) {
  const fs::path folder = make_run_folder(command.runs, experiment, this_program());
  const fs::path script = folder / kScript;
  write_file_atomically(script, local_script(experiment, this_program()));
  chmod(script.c_str(), 0755);
  print_out(fmt::format("==> {} in {}\n", experiment.name, folder.string()));
  MonitoredCommand started({"bash", script.string()});
  started.start();
  return started.wait();
}

int submit_all(std::vector<ResolvedExperiment> experiments, const ExperimentCommand& command) {
  SubmitOptions options;
  options.runs = command.runs;
  options.site = site_of(command);
  options.program = this_program();
  options.syncs_wandb = command.wandb_sync;
  options.max_parallel = command.max_parallel;
  options.baseline_first = command.baseline_first;
  for (const ResolvedExperiment& experiment : experiments) check_fits(experiment, options.site);
  if (command.dry_run) {
    for (const ResolvedExperiment& experiment : experiments) {
      if (!experiment.missing.empty()) log_warn("{} cannot be submitted yet: {}", experiment.name, experiment.missing);
      const fs::path folder = fs::absolute(options.runs / experiment.name / "NNN");
      print_out(job_script(experiment, options.site, options.program, folder, options.syncs_wandb));
    }
    return 0;
  }
  submit(std::move(experiments), options, [](const Submitted& each) {
    print_out(fmt::format("job {}  {}  {}\n", each.job_id, each.experiment, each.folder.string()));
  });
  return 0;
}

}  // namespace

int list_experiments(const ExperimentCommand& command) {
  const Catalogue catalogue = catalogue_of(command);
  const auto specs = catalogue.select(command.names().empty() ? std::vector<std::string>{"*"} : command.names());
  std::string text;
  Json list = Json::array();
  std::size_t width = 0;
  for (const ExperimentSpec* spec : specs) width = std::max(width, spec->name.size());
  for (const ExperimentSpec* spec : specs) {
    const int nodes = spec->resources.count("nodes", 1), gpus = spec->resources.count("gpus_per_node", 1);
    text +=
        fmt::format("{:<{}}  {} x {} GPU{}  {}\n", spec->name, width, nodes, gpus, gpus == 1 ? " " : "s", spec->job);
    list.push_back(
        {{"name", spec->name}, {"job", spec->job}, {"nodes", nodes}, {"gpus_per_node", gpus}, {"file", spec->file}});
  }
  print_out(command.as_json ? json_text(list, 2) + "\n" : text);
  return 0;
}

int show_experiments(const ExperimentCommand& command) {
  const Catalogue catalogue = catalogue_of(command);
  const Site site = site_of(command);
  std::string text;
  Json list = Json::array();
  for (const ResolvedExperiment& experiment : resolved_of(command, catalogue)) {
    const fs::path folder = std::filesystem::absolute(command.runs) / experiment.name / "NNN";
    text += (text.empty() ? "" : "\n") + show_text(experiment, job_traits()) + "\non Slurm:\n" +
            job_script(experiment, site, this_program(), folder, false);
    list.push_back(experiment_json(experiment, this_program()));
  }
  print_out(command.as_json ? json_text(list.size() == 1 ? list.front() : list, 2) + "\n" : text);
  return 0;
}

int run_experiments(const ExperimentCommand& command) {
  const Catalogue catalogue = catalogue_of(command);
  const std::vector<ResolvedExperiment> experiments = resolved_of(command, catalogue);
  if (command.dry_run) {
    for (const ResolvedExperiment& experiment : experiments) print_out(local_script(experiment, this_program()));
    return 0;
  }
  for (const ResolvedExperiment& experiment : experiments) experiment.check_can_start();
  int first_failure = 0;
  std::vector<std::string> failed;
  for (const ResolvedExperiment& experiment : experiments) {
    const int status = run_one(command, experiment);
    if (status == 0) continue;
    if (first_failure == 0) first_failure = status;
    failed.push_back(fmt::format("{} ended with {}", experiment.name, status));
    if (!command.keep_going || status > 128) break;  // a signal is meant for all
  }
  if (!failed.empty()) print_out(join(failed, "\n") + "\n");
  return first_failure;
}

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
  int num_skipped = 0;
  for (const RunStanding& state : standings_of(command.runs, newest_of(stored_of(command)))) {
    if (command.failed && state.stage != RunStage::kFailed) continue;
    if (!state.run.job_id) {
      log_warn("{} is skipped: it ran here, not on Slurm; `tessera experiment run` runs it again",
               state.run.experiment);
      ++num_skipped;
      continue;
    }
    if (state.stage == RunStage::kWaiting || state.stage == RunStage::kRunning) {
      log_warn("{} is skipped: {}", state.run.experiment, state.words);
      ++num_skipped;
      continue;
    }
    again.push_back(read_resolved_experiment(state.run));
    try {
      look_for_data(again.back(), job_traits(), Environment::of_process());
    } catch (const Error& error) {
      throw error.in_context(state.run.experiment);
    }
    for (const auto& [name, given] : command.gate) again.back().gate.set(name, given.text, given.origin);
  }
  if (again.empty()) {
    print_out(num_skipped > 0  ? "nothing is submitted\n"
              : command.failed ? "no run has failed\n"
                               : "there is nothing to run again\n");
    return 0;
  }
  return submit_all(std::move(again), command);
}

int write_site(const ExperimentCommand& command) {
  const Environment environment = Environment::of_process();
  fs::path file = command.output;
  if (file.empty()) {
    if (const auto there = site_file(command.site, environment); there && fs::exists(*there)) {
      throw UsageError(fmt::format("{} exists already; -o FILE writes another", there->string()));
    }
    file = own_site_file(environment);
  } else if (fs::exists(file)) {
    throw UsageError(fmt::format("{} exists already", file.string()));
  }
  const std::string text = discovered_site_text();
  if (file.has_parent_path()) fs::create_directories(file.parent_path());
  write_file_atomically(file, text);
  print_out(fmt::format("{}:\n{}", file.string(), text));
  return 0;
}

}  // namespace tessera
