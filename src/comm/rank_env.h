// Who am I? Read from the variables that torchrun, Slurm, Open MPI and PMIx set; no other process is asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"

namespace tessera {

// What the environment says about this rank. Fields that were not set are empty: the rendezvous fills them in.
struct RankEnv {
  int rank = 0;
  int world_size = 1;
  std::optional<int> local_rank, local_size, node_rank, num_nodes;
  std::optional<std::string> master_addr;
  std::optional<int> master_port;
  std::string job_id;     // goes into the job's key: two jobs on one port do not mix; may be empty
  std::string source;     // "torchrun's variables", "Slurm", "Open MPI", "none: one rank"
  bool by_srun = false;   // which, without -K1, leaves the others alone when a rank ends
  bool launched = false;  // by `tessera launch`: it holds the meeting place, not rank 0
};

// Variables set by `tessera launch` (TESSERA_LAUNCHED=1) beat Slurm's and MPI's. Otherwise every family that is
// present must agree; a contradiction throws UsageError that shows both sides and how to resolve it.
RankEnv discover_rank(const Environment& environment);

// Slurm's compressed form: "gpu[001-003,7],login" -> gpu001 gpu002 gpu003 gpu7 login. Throws UsageError if malformed.
std::vector<std::string> expand_nodelist(const std::string& nodelist);

}  // namespace tessera
