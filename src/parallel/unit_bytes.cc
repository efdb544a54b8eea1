#include "parallel/unit_bytes.h"

#include "model/step_memory.h"

namespace tessera {
namespace {

std::int64_t size_of(at::ScalarType type) {
  return static_cast<std::int64_t>(c10::elementSize(type));
}

struct Numels {
  std::int64_t whole, shard, updated;
};
Numels numels_of(const FlatLayout& layout, const Placement& placement) {
  const std::int64_t whole = layout.padded_numel(), shard = layout.shard_numel();
  return {whole, shard, placement.optimizer.is_split() ? shard : whole};
}

// Of a number, beside its parameter.
std::int64_t bytes_of_master(const UnitTypes& types, const Placement& placement, bool on_gpu) {
  return keeps_remainder(types, placement, on_gpu) ? size_of(at::kShort) : kFloatBytes;
}

}  // namespace

UnitBytes unit_bytes(const FlatLayout& layout, const Placement& row, const UnitTypes& types, int num_moments,
                     int ranks_per_node, bool on_gpu) {
  const Placement placement = row.in_shards(layout.num_shards());
  const Numels n = numels_of(layout, placement);
  const bool adds_whole = types.accumulates && !placement.gradients.is_split();
  const bool master_is_parameters = types.compute == at::kFloat && !placement.parameters.is_on_host();
  UnitBytes bytes;
  if (!placement.parameters.is_on_host()) {
    bytes.parameters = (placement.parameters.is_split() ? n.shard : n.whole) * size_of(types.compute);
  }
  if (!placement.optimizer.is_on_host()) {
    bytes.master = master_is_parameters ? 0 : n.updated * bytes_of_master(types, placement, on_gpu);
    bytes.moments = n.updated * num_moments * kFloatBytes;
  }
  bytes.gathered = placement.parameters.is_split() ? n.whole * size_of(types.compute) : 0;
  if (placement.keeps_second_copy()) bytes.second_copy = n.whole / ranks_per_node * size_of(types.compute);
  bytes.flat_gradient = n.whole * (adds_whole ? kFloatBytes : size_of(types.reduce));
  if (!placement.optimizer.is_on_host() || types.accumulates) {
    bytes.gradient = n.updated * (types.accumulates ? kFloatBytes : size_of(types.reduce));
  }
  return bytes;
}

UnitBytes host_unit_bytes(const FlatLayout& layout, const Placement& row, const UnitTypes& types, int num_moments,
                          bool on_gpu) {
  const Placement placement = row.in_shards(layout.num_shards());
  const Numels n = numels_of(layout, placement);
  const bool is_float = types.compute == at::kFloat;
  UnitBytes bytes;
  if (placement.parameters.is_on_host()) {
    bytes.parameters = n.shard * size_of(types.compute);
    // Gathers send one copy while the optimizer writes the other.
    if (placement.delayed_update && !is_float) bytes.parameters *= 2;
  } else if (placement.optimizer.is_on_host() && !is_float) {
    bytes.parameters = n.updated * size_of(types.compute);
  }
  if (placement.optimizer.is_on_host()) {
    const bool master_is_parameters = is_float && placement.parameters.is_on_host() && !placement.delayed_update;
    bytes.master = master_is_parameters ? 0 : n.updated * bytes_of_master(types, placement, on_gpu);
    bytes.moments = n.updated * num_moments * kFloatBytes;
    bytes.gradient = n.updated * (types.accumulates ? kFloatBytes : size_of(types.reduce));
  }
  return bytes;
}

}  // namespace tessera
