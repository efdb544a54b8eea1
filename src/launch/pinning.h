// Which cores a rank runs on: disjoint and near each other, if there are enough.
#pragma once

#include <vector>

#include "launch/host.h"

namespace tessera {

// For each of `num_ranks`, the numbers of its logical processors: all processors are given out, no two ranks share one,
// and the counts differ by at most one core. Empty if there are fewer processors than ranks: then no rank is pinned.
// `cpus` has the order of HostFacts, so that a rank's processors are neighbours and hyperthreads of one core stay with
// one rank if possible.
std::vector<std::vector<int>> share_cpus(const std::vector<Cpu>& cpus, int num_ranks);

// The number of compute threads per rank: its cores, at least one. Hyperthreads do not count: they slow down matmuls.
int threads_per_rank(const std::vector<Cpu>& cpus, int num_ranks);

}  // namespace tessera
