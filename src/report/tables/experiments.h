// The experiments by name, with the nodes and GPUs that they are meant for: the rows of the tables. (no torch)
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct Experiment {
  std::string name;  // family/path: fsdp/bloom/multi_gpu/2_gpus
  int nodes = 1, gpus_per_node = 1;

  std::string folder() const { return name.substr(0, name.rfind('/')); }
  int num_gpus() const { return nodes * gpus_per_node; }
};

const std::vector<Experiment>& experiments();
const Experiment* find_experiment(const std::string& name);  // null: there is none
// Those directly in a folder, in their order: of deepspeed/multi_gpu not those of its 2_gpus_stages_comparison. Or the
// one experiment of this name.
std::vector<const Experiment*> experiments_in(const std::string& folder);

}  // namespace tessera
