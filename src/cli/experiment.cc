#include <fmt/format.h>

#include <functional>
#include <map>

#include "cli/commands.h"
#include "cli/experiment_command.h"
#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

int run_experiment(const std::vector<std::string>& args) {
  static const std::map<std::string, std::function<int(const ExperimentCommand&)>> verbs = {
      {"list", list_experiments},
      {"show", show_experiments},
      {"run", run_experiments},
      {"submit", submit_experiments},
      {"rerun", rerun_experiments},
      {"status", status_of_experiments},
      {"cancel", cancel_experiments},
      {"table", table_of_experiments},
      {"report", report_experiments},
      {"collect", collect_experiments},
      {"site", write_site}};
  ExperimentCommand command;
  if (!read_experiment_command(args, command)) return 0;
  const auto verb = verbs.find(command.verb());
  if (verb != verbs.end()) return verb->second(command);
  std::vector<std::string> names;
  for (const auto& [name, run] : verbs) names.push_back(name);
  const auto meant = nearest(command.verb(), names);
  throw UsageError(fmt::format(
      "tessera experiment: {}{}; verbs: {}",
      command.words.empty() ? "the verb comes first" : fmt::format("unknown verb '{}'", printable(command.verb(), 40)),
      meant ? fmt::format(", did you mean '{}'?", *meant) : "", join(names, ", ")));
}

}  // namespace

Command experiment_command() {
  return {.name = "experiment",
          .summary = "the experiments of the catalogue: list, show, run, submit, table, ...",
          .has_rank = false,
          .declare = declare_experiment,
          .run = run_experiment};
}

}  // namespace tessera
