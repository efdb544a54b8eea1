#include <fmt/format.h>

#include "cli/experiment_command.h"
#include "core/output.h"
#include "experiment/job_script.h"
#include "experiment/show_text.h"
#include "jobs/jobs.h"

namespace tessera {

int list_experiments(const ExperimentCommand& command) {
  const Catalogue catalogue = catalogue_of(command);
  std::vector<const ExperimentSpec*> specs;
  if (command.names().empty()) {
    for (const ExperimentSpec& spec : catalogue.all()) specs.push_back(&spec);
  } else {
    specs = catalogue.select(command.names());
  }
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
    const std::filesystem::path folder = std::filesystem::absolute(command.runs) / experiment.name / "NNN";
    text += (text.empty() ? "" : "\n") + show_text(experiment, job_traits()) + "\non Slurm:\n" +
            job_script(experiment, site, this_program(), folder, {});
    list.push_back(experiment_json(experiment, this_program()));
  }
  print_out(command.as_json ? json_text(list.size() == 1 ? list.front() : list, 2) + "\n" : text);
  return 0;
}

}  // namespace tessera
