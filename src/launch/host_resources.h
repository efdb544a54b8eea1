// What the launcher needs to know about this host: its cores, its GPUs, the path of a program. It runs nothing to find
// out.
#pragma once

#include <string>
#include <vector>

#include "core/environment.h"

namespace tessera {

// One logical processor that this process may use, and where it sits. Hyperthreads share (package, core).
struct Cpu {
  int cpu = 0;
  int package = 0;
  int core = 0;
};

struct HostFacts {
  int num_gpus = 0;  // NVIDIA devices, narrowed by CUDA_VISIBLE_DEVICES
  std::vector<Cpu>
      cpus;  // those of the affinity mask, sorted by package and core: hyperthreads of one core are adjacent
};

HostFacts examine_host(const Environment& environment);

// The number of cores: two hyperthreads are one core.
int num_cores(const std::vector<Cpu>& cpus);

// The number of GPUs that CUDA_VISIBLE_DEVICES leaves of `num_devices`: as CUDA reads it, an entry that names no
// device hides those after it.
int num_visible_gpus(int num_devices, const Environment& environment);

// Like a shell: a name with a slash is a path, any other is searched in PATH. Throws UsageError that names the program
// and says why it cannot be run.
std::string find_program(const std::string& name, const Environment& environment);

// Which cores a rank runs on: disjoint and near each other, if there are enough.

// For each of `num_ranks`, the numbers of its logical processors: all processors are given out, no two ranks share one,
// and the counts differ by at most one core. Empty if there are fewer processors than ranks: then no rank is pinned.
// `cpus` has the order of HostFacts, so that a rank's processors are neighbours and hyperthreads of one core stay with
// one rank if possible.
std::vector<std::vector<int>> share_cpus(const std::vector<Cpu>& cpus, int num_ranks);

// The number of compute threads per rank: its cores, at least one. Hyperthreads do not count: they slow down matmuls.
int threads_per_rank(const std::vector<Cpu>& cpus, int num_ranks);

}  // namespace tessera
