#include "experiment/experiments.h"

#include <algorithm>

#include "record/metrics.h"

namespace tessera {

const Experiment* find_experiment(const std::vector<Experiment>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Experiment& experiment) { return experiment.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<const Experiment*> experiments_in(const std::vector<Experiment>& all, const std::string& folder) {
  if (const Experiment* one = find_experiment(all, folder)) return {one};
  std::vector<const Experiment*> children;
  for (const Experiment& experiment : all) {
    if (experiment.folder() == folder) children.push_back(&experiment);
  }
  return children;
}

std::string without_repeat(const std::string& name) {
  const std::size_t slash = name.rfind("/repeat_");
  if (slash == std::string::npos || slash == 0) return name;
  const std::string number = name.substr(slash + std::string("/repeat_").size());
  const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? name.substr(0, slash) : name;
}

std::vector<Experiment> with_experiments_of(const std::vector<RunRecord>& runs, std::vector<Experiment> all) {
  for (const RunRecord& run : runs) {
    const std::string name = without_repeat(run.text("experiment"));
    if (name.empty() || find_experiment(all, name) != nullptr) continue;
    Experiment& added = all.emplace_back();
    added.name = name;
    added.nodes = std::max(1, num_nodes(run));
    added.gpus_per_node = std::max(1, num_ranks(run) / added.nodes);
    added.family = added.folder();
  }
  return all;
}

}  // namespace tessera
