// The program: one subcommand a file, chosen here.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cli/comm_test.h"
#include "cli/env.h"
#include "cli/launch.h"
#include "comm/failure.h"
#include "comm/lobby.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "core/version.h"

namespace tessera {
namespace {

using Arguments = std::vector<std::string>;

struct Command {
  std::string name;
  std::string summary;  // empty: not for users
  std::function<int(const Arguments&)> run;
};

std::vector<std::string> rank_commands();

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"launch", "start ranks on this host, as torchrun does",
       [](const Arguments& arguments) { return run_launch(arguments, rank_commands()); }},
      {"comm-test", "measure and check the collectives, as nccl-tests does", run_comm_test},
      {"env", "show what this machine offers, and what is wrong with it", run_env},
      {"__minder", "", run_minder},
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

std::string usage() {
  std::string text = "usage: tessera COMMAND [options]\n\n";
  for (const Command& command : commands()) {
    if (!command.summary.empty()) text += fmt::format("  {:<12} {}\n", command.name, command.summary);
  }
  return text + "\n`tessera COMMAND --help` shows a command's options.\n";
}

int run(const Arguments& arguments) {
  const std::string name = arguments.empty() ? "--help" : arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    fmt::print("{}", usage());
    return arguments.empty() ? static_cast<int>(ExitStatus::kUsage) : 0;
  }
  if (name == "--version") {
    fmt::print("tessera {}\n", kVersion);
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == name) return command.run({arguments.begin() + 1, arguments.end()});
    if (!command.summary.empty()) names.push_back(command.name);
  }
  const auto meant = nearest(name, names);
  throw UsageError(fmt::format("unknown command '{}'{}; commands: {}", name,
                               meant ? fmt::format(", did you mean '{}'?", *meant) : "", join(names, ", ")));
}

// This rank by whoever started it, without a check: an error is being told already.
int rank_for_messages() {
  const Environment environment = Environment::of_process();
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (const auto value = environment.find(name)) return static_cast<int>(parse_integer(*value).value_or(0));
  }
  return 0;
}

// One clear message, and the same message for the launcher.
int report(const std::string& message, int status) {
  const int rank = rank_for_messages();
  // All ranks see a wrong flag: rank 0 says so first, and whoever started them then ends the others.
  if (rank > 0 && status == static_cast<int>(ExitStatus::kUsage)) std::this_thread::sleep_for(std::chrono::seconds(1));
  fmt::print(stderr, "tessera: error: {}\n", message);
  record_failure({.rank = rank, .host = host_name(), .message = message, .exit_status = status});
  return status;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  try {
    configure_log(Environment::of_process().find("TESSERA_LOG").value_or("info"), 0);
    return run({argv + 1, argv + argc});
  } catch (const Error& error) {
    return report(error.what(), static_cast<int>(error.status()));
  } catch (const std::exception& error) {
    return report(message_of(error), static_cast<int>(ExitStatus::kFailure));
  }
}
