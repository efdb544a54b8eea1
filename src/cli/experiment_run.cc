#include <fmt/format.h>
#include <sys/stat.h>

#include "cli/experiment_command.h"
#include "core/file.h"
#include "core/output.h"
#include "core/text.h"
#include "experiment/local_script.h"
#include "experiment/run_folder.h"
#include "launch/monitored_command.h"

namespace tessera {
namespace {

constexpr const char* kScript = "run.sh";

int run_one(const ExperimentCommand& command, const ResolvedExperiment& experiment) {
  const std::filesystem::path folder = make_run_folder(command.runs, experiment, this_program());
  const std::filesystem::path script = folder / kScript;
  write_file_atomically(script, local_script(experiment, this_program()));
  chmod(script.c_str(), 0755);
  print_out(fmt::format("==> {} in {}\n", experiment.name, folder.string()));
  MonitoredCommand started({"bash", script.string()});
  started.start();
  return started.wait();
}

}  // namespace

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

}  // namespace tessera
