#include "launch/pinning.h"

#include <algorithm>

namespace tessera {

std::vector<std::vector<int>> share_cpus(const std::vector<Cpu>& cpus, int num_ranks) {
  if (num_ranks < 1 || static_cast<int>(cpus.size()) < num_ranks) return {};
  // Whole cores are shared out; with fewer cores than ranks, single hyperthreads.
  std::vector<std::vector<int>> cores;
  const bool whole_cores = num_cores(cpus) >= num_ranks;
  const Cpu* last = nullptr;
  for (const Cpu& cpu : cpus) {
    const bool same_core = last != nullptr && last->package == cpu.package && last->core == cpu.core;
    if (!whole_cores || !same_core) cores.emplace_back();
    cores.back().push_back(cpu.cpu);
    last = &cpu;
  }
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(num_ranks));
  for (std::size_t i = 0; i < cores.size(); ++i) {
    // Core i of C belongs to rank i * R / C: neighbours together, sizes within one of each other.
    auto& share = shares[i * shares.size() / cores.size()];
    share.insert(share.end(), cores[i].begin(), cores[i].end());
  }
  return shares;
}

int threads_per_rank(const std::vector<Cpu>& cpus, int num_ranks) {
  return std::max(1, num_cores(cpus) / std::max(1, num_ranks));
}

}  // namespace tessera
