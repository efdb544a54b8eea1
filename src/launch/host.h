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

}  // namespace tessera
