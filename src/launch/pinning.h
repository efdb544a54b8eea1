// Which cores a rank runs on: disjoint ones, near each other, while there are enough.
#pragma once

#include <vector>

#include "launch/host.h"

namespace tessera {

// For each of `num_ranks` the numbers of its logical processors; all of them are given out, no two ranks share one,
// and the counts differ by at most one core. Empty when there are fewer processors than ranks: then nobody is pinned.
// `cpus` in the order of HostFacts, so that a rank's processors are neighbours and hyperthreads of one core stay
// with one rank where the numbers allow it.
std::vector<std::vector<int>> share_cpus(const std::vector<Cpu>& cpus, int num_ranks);

// Threads a rank should compute with: its cores, at least one. Hyperthreads do not count: they slow matmuls down.
int threads_per_rank(const std::vector<Cpu>& cpus, int num_ranks);

}  // namespace tessera
