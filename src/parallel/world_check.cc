#include "parallel/world_check.h"

#include <fmt/format.h>

#include <map>

#include "core/error.h"
#include "parallel/placement.h"

namespace tessera {

void check_world(const World& world, const SpreadOptions& spread) {
  const Placement placement = placement_of(spread);
  if (placement.is_for_one_rank && world.size() > 1) {
    throw UsageError(
        fmt::format("strategy '{}' is for one rank, but there are {}: choose ddp, a ZeRO or an FSDP strategy",
                    placement.strategy, world.size()));
  }
  if (!placement.needs_equal_nodes()) return;
  std::map<int, int> num_ranks_of;
  for (const int node : world.node_of_rank()) ++num_ranks_of[node];
  for (const auto& [node, num_ranks] : num_ranks_of) {
    if (num_ranks == num_ranks_of.at(0)) continue;
    throw UsageError(
        fmt::format("strategy '{}' needs the same number of ranks on every node, but node 0 has {} and node {} has {}: "
                    "start the same number on each, or choose full_shard",
                    placement.strategy, num_ranks_of.at(0), node, num_ranks));
  }
  if (spread.hpz_partition_size > 0 && spread.hpz_partition_size != num_ranks_of.at(0)) {
    throw UsageError(fmt::format(
        "hpz_partition_size is {}, but nodes have {} ranks: the second copy is split over the ranks of a node; "
        "set it to {} or leave it out",
        spread.hpz_partition_size, num_ranks_of.at(0), num_ranks_of.at(0)));
  }
}

}  // namespace tessera
