// What `tessera env` knows about a machine, and what it advises: facts in, problems out, no access to the system.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "monitor/host_info.h"
#include "monitor/variables.h"

namespace tessera {

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

}  // namespace tessera
