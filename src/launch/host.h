// What the launcher needs to know of this host: its cores, its GPUs, where a program lies. Nothing is run to find out.
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
  int num_gpus = 0;       // NVIDIA devices, narrowed by CUDA_VISIBLE_DEVICES
  std::vector<Cpu> cpus;  // those of the affinity mask, hyperthreads of one core side by side, package by package
};

HostFacts examine_host(const Environment& environment);

// Logical processors and cores: two hyperthreads are one core.
int num_cores(const std::vector<Cpu>& cpus);

// The number of GPUs that CUDA_VISIBLE_DEVICES leaves of `num_devices`: as CUDA reads it, an entry that names no
// device hides those after it.
int num_visible_gpus(int num_devices, const Environment& environment);

// As a shell finds it: a name with a slash as it is, another one through PATH. Throws UsageError that says what was
// looked for and why it cannot be run.
std::string find_program(const std::string& name, const Environment& environment);

}  // namespace tessera
