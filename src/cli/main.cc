// The program: one file per subcommand, chosen here.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/analyze_memory.h"
#include "cli/checkpoint.h"
#include "cli/comm_test.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/convert.h"
#include "cli/data.h"
#include "cli/demo.h"
#include "cli/env.h"
#include "cli/evaluate.h"
#include "cli/experiment.h"
#include "cli/generate.h"
#include "cli/import.h"
#include "cli/inspect.h"
#include "cli/launch.h"
#include "cli/man.h"
#include "cli/monitor.h"
#include "cli/plan.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/tokenize.h"
#include "cli/torch_messages.h"
#include "cli/train.h"
#include "cli/version.h"
#include "comm/failure.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/log.h"
#include "core/output.h"
#include "core/standard_streams.h"
#include "core/text.h"
#include "core/thread_count.h"
#include "jobs/jobs.h"

namespace tessera {
namespace {

using Arguments = std::vector<std::string>;

std::vector<std::string> rank_commands();

std::vector<std::string> names_of_jobs() {
  std::vector<std::string> names;
  for (const JobTraits* job : job_traits()) names.push_back(job->name);
  return names;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"launch", "start ranks on this host, as torchrun does",
       [](const Arguments& arguments) { return run_launch(arguments, rank_commands()); }},
      {"analyze-memory", "peak, average and mode of memory logs, by job or by file", run_analyze_memory},
      {"checkpoint", "list, check, show and remove checkpoints", run_checkpoint},
      {"comm-test", "measure and check the collectives, as nccl-tests does", run_comm_test},
      {"completion", "complete commands, options and values in bash, zsh or fish",
       [](const Arguments& arguments) { return run_completion(arguments, commands()); }},
      {"convert", "write a model folder or weight file in another format or type", run_convert},
      {"data", "inspect a data file or folder: what is in it, how it packs", run_data},
      {"demo", "train a small BLOOM on this machine, in about two minutes", run_demo},
      {"env", "show what this machine offers, and what is wrong with it", run_env},
      {"evaluate", "loss, exact match and F1 of a model folder", run_evaluate},
      {"experiment", "the experiments of the catalogue: list, show, run, submit, table, ...", run_experiment},
      {"generate", "continue a text with a model folder", run_generate},
      {"import", "turn an sbatch script with its files into an experiment", run_import},
      {"inspect", "parameters, bytes, dtype and ties of a model folder or weight file", run_inspect},
      {"man", "print the man page", [](const Arguments& arguments) { return run_man(arguments, commands()); }},
      {"monitor", "write memory logs of any program, as nvidia-smi and psrecord do", run_monitor},
      {"plan", "the memory of a training step on each rank, by strategy", run_plan},
      {"report", "one page about recorded runs: words, tables and plots in one HTML file", run_report},
      {"runs", "list, show and compare recorded runs", run_runs},
      {"table", "a table of the experiments, filled from recorded runs", run_table},
      {"tokenize", "texts to token ids and back, one per line", run_tokenize},
      {"train", "train a model: " + join(names_of_jobs(), ", "), run_train},
      {"__minder", "", run_rank_runner},
  };
  return all;
}

// What `tessera launch` may start by its bare name.
std::vector<std::string> rank_commands() {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (!command.summary.empty() && command.name != "launch") names.push_back(command.name);
  }
  return names;
}

// Commands that are never one of several ranks: their log lines name none.
bool is_without_ranks(const std::string& name) {
  for (const char* each : {"analyze-memory", "analyze_memory", "checkpoint", "completion", "demo", "experiment", "man",
                           "monitor", "report", "runs", "table"}) {
    if (name == each) return true;
  }
  return false;
}

std::string usage() {
  std::string text = "usage: tessera COMMAND [options]\n\n";
  for (const Command& command : commands()) {
    if (!command.summary.empty()) text += fmt::format("  {:<14} {}\n", command.name, command.summary);
  }
  return text + "\n`tessera COMMAND --help` shows a command's options, `tessera --version` what it is built of.\n";
}

// What the first word asks for; the rest is the command's.
const Command& find_command(const std::string& word) {
  std::string name = word;
  if (!name.starts_with("__")) std::replace(name.begin(), name.end(), '_', '-');  // the same, as in settings
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == name) return command;
    if (!command.summary.empty()) names.push_back(command.name);
  }
  const auto meant = nearest(name, names);
  throw UsageError(fmt::format("unknown command '{}'{}; commands: {}", name,
                               meant ? fmt::format(", did you mean '{}'?", *meant) : "", join(names, ", ")));
}

int run(const Arguments& arguments) {
  try {
    // `tessera env` reports a wrong TESSERA_LOG or OMP_NUM_THREADS; everything else refuses it.
    if (arguments.empty() || arguments.front() != "env") {
      const bool has_rank = arguments.empty() || !is_without_ranks(arguments.front());
      configure_log(Environment::of_process().find("TESSERA_LOG").value_or("info"), has_rank ? 0 : -1);
    }
    const std::string first = arguments.empty() ? "--help" : arguments.front();
    if (first == "--help" || first == "-h" || first == "help") {
      print_out(usage());
      return arguments.empty() ? static_cast<int>(ExitStatus::kUsage) : 0;
    }
    if (first == "--version" || first == "version") {
      print_out(version_text());
      return 0;
    }
    const Command& command = find_command(first);
    if (first != "env") check_thread_count(Environment::of_process());
    tame_torch_messages();
    return command.run({arguments.begin() + 1, arguments.end()});
  } catch (const std::exception& error) {
    return report_failure(error);
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  tessera::open_missing_standard_streams();
  const int status = tessera::run({argv + 1, argv + argc});
  std::fflush(nullptr);
  std::quick_exit(status);  // libtorch's destructors take longer than many a command, and nothing needs them
}
