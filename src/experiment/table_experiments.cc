#include "experiment/table_experiments.h"

namespace tessera {

std::vector<Experiment> table_experiments(const Catalogue& catalogue) {
  std::vector<Experiment> all;
  for (const ExperimentSpec& spec : catalogue.all()) {
    const std::string name = spec.repeat > 0 ? without_repeat(spec.name) : spec.name;
    if (find_experiment(all, name) != nullptr) continue;
    const int nodes = spec.resources.has("nodes") ? spec.resources.count("nodes", 1) : 1;
    const int gpus = spec.resources.has("gpus_per_node") ? spec.resources.count("gpus_per_node", 1) : 1;
    all.push_back({name, nodes, gpus, spec.family, {spec.study.kind, without_repeat(spec.study.baseline)}});
  }
  return all;
}

}  // namespace tessera
