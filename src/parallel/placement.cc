#include "parallel/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

const std::vector<Placement>& table() {
  //                                          split over        param. released grad.  optim. across nodes
  static const std::vector<Placement> rows = {
      {"single", /*        */ ShardOver::kNobody, false, false, false, false, false},
      {"ddp", /*           */ ShardOver::kWorld, false, false, false, false, false},
      {"zero0", /*         */ ShardOver::kWorld, false, false, false, false, false},
      {"zero1", /*         */ ShardOver::kWorld, false, false, false, true, false},
      {"zero2", /*         */ ShardOver::kWorld, false, false, true, true, false},
      {"zero3", /*         */ ShardOver::kWorld, true, true, true, true, false},
      {"full_shard", /*    */ ShardOver::kWorld, true, true, true, true, false},
      {"shard_grad_op", /* */ ShardOver::kWorld, true, false, true, true, false},
      {"hybrid_shard", /*  */ ShardOver::kNode, true, true, true, true, true},
      {"no_shard", /*      */ ShardOver::kWorld, false, false, false, false, false},
  };
  return rows;
}

}  // namespace

Placement placement_of(std::string_view name, const OffloadChoice& offload) {
  const auto row = std::find_if(table().begin(), table().end(), [&](const Placement& p) { return p.strategy == name; });
  if (row == table().end()) {
    const auto meant = nearest(std::string(name), strategy_names());
    throw UsageError(fmt::format("strategy '{}' is not known{}; strategies: {}", name,
                                 meant ? fmt::format(", did you mean '{}'?", *meant) : "",
                                 join(strategy_names(), ", ")));
  }
  Placement placement = *row;
  if (offload.parameters && !placement.parameters_split) {
    throw UsageError(fmt::format(
        "offload_param needs a strategy that splits the parameters (zero3, full_shard, shard_grad_op or hybrid_shard), "
        "not {}: there every rank keeps them whole on its device",
        name));
  }
  if (offload.delayed_update && !offload.optimizer) {
    throw UsageError(
        "delayed_update needs offload_optimizer: only an update in host memory can run beside the next step");
  }
  placement.delayed_update = offload.delayed_update;
  placement.offload_optimizer = offload.optimizer;
  placement.offload_parameters = offload.parameters;
  return placement;
}

Placement Placement::on(int num_shards) const {
  Placement placement = *this;
  if (num_shards == 1 && !offload_parameters) placement.parameters_split = placement.optimizer_split = false;
  // Nor is there anybody to reduce micro-steps with one by one, unless other nodes hold the same.
  if (num_shards == 1 && over != ShardOver::kNode) placement.gradients_split = false;
  return placement;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Placement& row : table()) names.push_back(row.strategy);
  return names;
}

}  // namespace tessera
