#include "comm/gpu_sharing.h"

#include <fmt/format.h>

#include <map>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

std::string key_of(int rank) {
  return fmt::format("tessera/gpu/{}", rank);
}

}  // namespace

void refuse_shared_gpus(c10d::Store& store, int rank, const std::vector<std::string>& hosts, const std::string& gpu) {
  store.set(key_of(rank), gpu);
  const std::string& own_host = hosts[static_cast<std::size_t>(rank)];
  std::map<std::string, std::vector<int>> ranks_of;  // by GPU
  int num_here = 0;
  for (int other = 0; other < static_cast<int>(hosts.size()); ++other) {
    if (hosts[static_cast<std::size_t>(other)] != own_host) continue;
    const std::vector<std::uint8_t> found = store.get(key_of(other));
    ranks_of[std::string(found.begin(), found.end())].push_back(other);
    ++num_here;
  }
  for (const auto& [shared, ranks] : ranks_of) {
    if (ranks.size() == 1) continue;
    throw UsageError(fmt::format(
        "ranks {} on host {} would share one GPU ({}): the {} ranks there see {} GPU{}; start one rank per "
        "GPU, or give --share_gpus",
        format_ranges(ranks), own_host, shared, num_here, ranks_of.size(), ranks_of.size() == 1 ? "" : "s"));
  }
}

}  // namespace tessera
