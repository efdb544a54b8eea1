#include "experiment/local_script.h"

#include <fmt/format.h>

#include <filesystem>

#include "experiment/script_parts.h"

namespace tessera {
namespace {

std::vector<std::string> launched(const ResolvedExperiment& experiment, const std::string& program,
                                  const std::vector<std::string>& command) {
  std::vector<std::string> words = {program};
  if (experiment.num_ranks() > 1) {
    words.insert(words.end(), {"launch", "--nproc_per_node", std::to_string(experiment.num_ranks())});
  }
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// %x is the job's name, %j its id, as in sbatch's --output.
std::string local_log(const ResolvedExperiment& experiment) {
  std::string log = experiment.resources.text("log");
  const auto replace = [&](const std::string& what, const std::string& by) {
    if (const std::size_t at = log.find(what); at != std::string::npos) log.replace(at, what.size(), by);
  };
  replace("%x", experiment.resources.text("job_name"));
  replace("%j", "here");
  return log;
}

std::string local_gate(const ResolvedExperiment& experiment, const std::string& program) {
  if (!experiment.has_gate()) return "";
  return fmt::format(
      "# The bandwidth gate: no training below {} GB/s.\n{} 2>&1 | tee {}\n"
      "status=${{PIPESTATUS[0]}}\n[ \"$status\" = 0 ] || finish \"$status\"\n\n",
      experiment.gate.text("min_busbw"), shell_command(launched(experiment, program, experiment.gate_words())),
      shell_word((std::filesystem::path(local_log(experiment)).parent_path() / "comm_test.log").string()));
}

}  // namespace

std::vector<std::string> local_words(const ResolvedExperiment& experiment, const std::string& program) {
  std::vector<std::string> train = experiment.train_words();
  train.insert(train.begin(), "train");
  return launched(experiment, program, train);
}

std::string local_script(const ResolvedExperiment& experiment, const Program& program) {
  return fmt::format(
      "#!/usr/bin/env bash\n"
      "# {}, on this host. Written by tessera {}; may be edited and run again.\n"
      "set -uo pipefail\n"
      "cd \"$(dirname \"${{BASH_SOURCE[0]}}\")\" || exit\n"
      "export TESSERA_EXPERIMENT={}\n{}\n"
      "finish() {{\n  echo \"$1\" >exit_status\n  exit \"$1\"\n}}\n\n{}{} 2>&1 | tee {}\nfinish "
      "\"${{PIPESTATUS[0]}}\"\n",
      experiment.name, program.version, shell_word(experiment.name), shell_exports(experiment.environment),
      local_gate(experiment, program.path), shell_command(local_words(experiment, program.path)),
      shell_word(local_log(experiment)));
}

}  // namespace tessera
