// What `tessera env` knows about a machine, and what it advises: facts in, problems out, no access to the system.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "monitor/host_info.h"

namespace tessera {

// Environment variables.
using Variables = std::map<std::string, std::string>;

// Those of `all` that may be shown: named ones and every NCCL_*, TORCH_NCCL_*, OMP_*, UCX_*, OMPI_MCA_*, GLOO_*. Never
// others: they may hold secrets. A shown variable whose name suggests a secret has the value "(set)".
Variables shown_variables(const Variables& all);

// Names in `all` that nothing reads although they look like it, with the name that was most likely meant: NCCL_DEBGU ->
// NCCL_DEBUG, NCLL_DEBUG -> NCCL_DEBUG. An unknown NCCL variable that resembles no known one is ignored.
Variables misspelt_variables(const Variables& all);

// What is wrong with a value of CUDA_VISIBLE_DEVICES: "'x' is not a GPU number"; none if CUDA accepts it.
std::optional<std::string> visible_devices_mistake(const std::string& value);
// Whether such a value leaves CUDA without a GPU: empty, -1 or NoDevFiles first.
bool hides_every_gpu(const std::string& value);

bool is_port(const std::string& value);

struct GpuFacts {
  std::string name, compute_capability;
  std::int64_t memory_bytes = 0;
  std::vector<bool> can_access;  // by index of the other GPU
};

// Empty strings: unknown or absent.
struct MachineFacts {
  HostInfo host;
  int num_usable_processors = 0, num_usable_cores = 0;  // by the affinity mask; 0: unknown

  std::string tessera_version, torch_version;
  bool torch_has_cuda = false;     // libtorch_cuda.so is next to libtorch_cpu.so
  bool has_nvidia_driver = false;  // /dev/nvidiactl
  bool has_cuda_flavour = false;   // libtessera_cuda.so was built
  std::string cuda_flavour;        // "CUDA 13.0, for GPUs of compute capability 8.0, 9.0 and newer"
  std::string no_gpu_reason;
  std::string cuda_runtime, cuda_driver, nccl_version;
  std::vector<GpuFacts> gpus;                                        // visible to this process
  std::string mpi_version, mpi_library, mpi_built_for, mpirun_path;  // of Open MPI
  std::string no_mpi_reason;

  Variables slurm;                       // SLURM_JOB_ID, ...
  std::vector<std::string> slurm_hosts;  // the node list, expanded
  std::string slurm_mistake;             // why the list cannot be read

  Variables rank_variables;  // RANK, OMPI_COMM_WORLD_SIZE, ... that are set
  std::string rank_meaning;  // "rank 0 of 4 (Open MPI)"
  std::string rank_mistake;  // the contradiction

  Variables variables;              // those that are set and that Tessera, torch, NCCL or MPI read
  Variables misspelt_variables;     // as set -> as meant
  std::string master_addr_mistake;  // why MASTER_ADDR cannot be resolved

  int num_ranks_here = 0;        // ranks that this host would get; 0: not given
  std::string num_ranks_source;  // "--nproc_per_node", "Slurm"
};

struct Problem {
  std::string what;    // "2 ranks would share 1 core"
  std::string advice;  // what to do, or what it means
};

std::vector<Problem> find_problems(const MachineFacts& facts);

// Whole cores that this process may use, within the cgroup's quota; at least 1.
int usable_cores(const MachineFacts& facts);

// The facts of a machine, for people and for programs: the same facts in both.
std::string machine_text(const MachineFacts& facts, const std::vector<Problem>& problems);
// Unknown facts are null. Strings may hold any bytes: print with json_text.
Json machine_json(const MachineFacts& facts, const std::vector<Problem>& problems);

}  // namespace tessera
