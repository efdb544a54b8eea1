#include "cli/commands.h"

#include "core/file.h"
#include "core/output.h"

namespace tessera {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      launch_command(),     analyze_memory_command(), checkpoint_command(), comm_test_command(),
      completion_command(), convert_command(),        data_command(),       demo_command(),
      env_command(),        evaluate_command(),       experiment_command(), generate_command(),
      import_command(),     inspect_command(),        man_command(),        monitor_command(),
      plan_command(),       report_command(),         runs_command(),       table_command(),
      tokenize_command(),   train_command(),          minder_command(),     settings_page_command(),
  };
  return all;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (!command.summary.empty()) names.push_back(command.name);
  }
  return names;
}

std::vector<DescribedCommand> described_commands() {
  std::vector<DescribedCommand> result;
  const auto add = [&](const Command& command) {
    const Schema schema = command.schema();
    result.push_back({command.name, command.summary, schema.usage(), schema.verbs(), schema.options()});
  };
  for (const Command& command : commands()) {
    if (command.summary.empty()) continue;
    if (command.jobs.empty()) {
      add(command);
      continue;
    }
    result.push_back({.name = command.name,
                      .summary = command.summary,
                      .usage = "tessera " + command.name + " JOB [settings]",
                      .options = {{.names = {"--help"}, .help = "the jobs"}}});
    for (const Command& job : command.jobs) add(job);
  }
  return result;
}

void write_output(const std::string& text, const std::string& file) {
  if (file.empty()) {
    print_out(text);
  } else {
    write_file_atomically(file, text);
  }
}

}  // namespace tessera
