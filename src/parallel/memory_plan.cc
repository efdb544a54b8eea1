#include "parallel/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "parallel/step_player.h"
#include "parallel/unit_division.h"

namespace tessera {

std::vector<PlannedUnit> planned_units(torch::nn::Module& model, const std::vector<Unit>& units,
                                       const std::function<bool(const std::string&)>& is_exempt_from_decay) {
  const auto of_unit = divide(model, units, is_exempt_from_decay);
  std::vector<PlannedUnit> planned;
  for (std::size_t i = 0; i < of_unit.size(); ++i) {
    PlannedUnit& unit = planned.emplace_back(PlannedUnit{i < units.size() ? units[i].name : "root", {}});
    for (const UnitParameter& p : of_unit[i]) unit.parameters.push_back({p.name, p.parameter.sizes().vec(), p.group});
  }
  return planned;
}

int ranks_of_node(const MemoryPlanOptions& options) {
  return options.ranks_per_node == 0 ? options.num_ranks : options.ranks_per_node;
}

Placement planned_placement(const MemoryPlanOptions& options) {
  const Placement placement = placement_of(options.spread).on_nodes_of(ranks_of_node(options), options.num_ranks);
  return options.on_gpu || options.host_memory_is_separate ? placement : placement.on_device_alone();
}

int num_shards_of(const MemoryPlanOptions& options) {
  switch (placement_of(options.spread).reduced_over()) {
    case Over::kNobody:
      return 1;
    case Over::kWorld:
      return options.num_ranks;
    case Over::kNode:
      return std::min(ranks_of_node(options), options.num_ranks);
  }
  return 1;
}

MemoryPlan plan_memory(const std::vector<PlannedUnit>& units, const StepMemory* step,
                       const MemoryPlanOptions& options) {
  if (options.num_ranks < 1) throw UsageError(fmt::format("{} ranks: at least 1 is needed", options.num_ranks));
  if (options.num_micro_steps < 1) {
    throw UsageError(fmt::format("{} micro-steps per update: at least 1 is needed", options.num_micro_steps));
  }
  if (options.ranks_per_node < 0 || options.ranks_per_node > options.num_ranks ||
      (options.ranks_per_node > 0 && options.num_ranks % options.ranks_per_node != 0)) {
    throw UsageError(fmt::format("{} ranks per node cannot make {} ranks: every node needs the same number",
                                 options.ranks_per_node, options.num_ranks));
  }
  if (placement_of(options.spread).is_for_one_rank && options.num_ranks > 1) {
    throw UsageError(
        fmt::format("strategy '{}' is for one rank, but there are {}", options.spread.strategy, options.num_ranks));
  }
  if (units.empty() || (step != nullptr && step->num_units() + 1 != units.size())) {
    throw Error("a memory plan needs exactly the units of the model's step, and the root");
  }
  return StepPlayer(units, step, options).play();
}

}  // namespace tessera
