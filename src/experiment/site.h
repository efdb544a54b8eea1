// What a cluster needs that an experiment does not know: its site file. (no torch)
//
//   {
//     "tessera_site": 1,
//     "partition": "gpu", "account": "...", "constraint": "a100", "reservation": "...", "qos": "...",
//     "gpus_per_node": 8,                                   // what a node has
//     "modules": ["cuda/13.0"],
//     "interface": "ib0",                                   // NCCL_SOCKET_IFNAME of every run
//     "environment": {"NCCL_IB_HCA": "mlx5"},               // of every run
//     "gate_environment": {"NCCL_ALGO": "Tree"},            // of the bandwidth gate alone
//     "sbatch": ["--mail-type=END"],                        // further #SBATCH lines
//     "srun": ["--mpi=pmix"],                               // options of srun
//     "prefix": "apptainer exec --nv /images/tessera.sif",  // before the program: a container
//     "settings": {"all": {}, "bloom-qa": {"train_file": "/data/squad/train-v1.1.json"}}   // by job: data, caches
//   }
//
// Comments are allowed. Every name may be left out.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "experiment/values.h"

namespace tessera {

struct Site {
  std::string file;  // empty: there is none
  std::string partition, account, constraint, reservation, qos, interface, prefix;
  int gpus_per_node = 0;  // 0: unknown
  std::vector<std::string> modules, sbatch, srun = {"--mpi=pmix"};
  Values environment, gate_environment;
  std::map<std::string, Values> settings;  // by job

  Values settings_of(const std::string& job) const;  // those of "all", then the job's own
};

// --site FILE, else $TESSERA_SITE, else ~/.config/tessera/site.json (or $XDG_CONFIG_HOME's) if it exists.
std::optional<std::filesystem::path> site_file(const std::string& named, const Environment& environment);

// Where a user's own lies, whether it exists or not. Throws UsageError without HOME.
std::filesystem::path own_site_file(const Environment& environment);

// Throws UsageError with place and reason, for unknown names too.
Site parse_site(const std::string& text, const std::string& origin);
Site read_site(const std::string& named, const Environment& environment);  // an empty one if there is no file

// A first site file, from what the cluster says about itself.

struct Partition {
  std::string name;
  bool is_default = false;
  int gpus_per_node = 0, num_nodes = 0;
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
