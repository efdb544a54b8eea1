// A first site file from what the cluster says about itself. (no torch)
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct Partition {
  std::string name;
  bool is_default = false;
  int gpus_per_node = 0, cpus_per_node = 0, num_nodes = 0;
  std::string gpu_type;  // of --gres; empty: not said
  std::vector<std::string> features;
};

std::vector<Partition> parse_sinfo(const std::string& text);  // -h -o '%P|%G|%f|%c|%D'

// The partition with GPUs that is the default, else the largest with GPUs, else the default.
const Partition* choose_partition(const std::vector<Partition>& partitions);

// JSON with a comment on every line that it wrote or that a user may want to add.
std::string first_site_text(const std::vector<Partition>& partitions);

// Asks sinfo. Throws Error with its answer.
std::string discovered_site_text();

}  // namespace tessera
