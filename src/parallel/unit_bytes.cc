#include "parallel/unit_bytes.h"

namespace tessera {

UnitBytes unit_bytes(const FlatLayout& layout, const Placement& row, const UnitTypes& types, int num_moments) {
  const Placement placement = row.on(layout.num_shards());
  const auto size_of = [](at::ScalarType type) { return static_cast<std::int64_t>(c10::elementSize(type)); };
  const std::int64_t whole = layout.padded_numel(), shard = layout.shard_numel();
  const std::int64_t updated = placement.optimizer_split ? shard : whole;
  const bool adds_whole = types.accumulates && !placement.gradients_split;
  UnitBytes bytes;
  bytes.parameters = (placement.parameters_split ? shard : whole) * size_of(types.compute);
  bytes.master = types.compute == at::kFloat ? 0 : updated * size_of(at::kFloat);
  bytes.moments = updated * num_moments * size_of(at::kFloat);
  bytes.gathered = placement.parameters_split ? whole * size_of(types.compute) : 0;
  bytes.flat_gradient = whole * size_of(adds_whole ? at::kFloat : types.reduce);
  bytes.gradient = updated * size_of(types.accumulates ? at::kFloat : types.reduce);
  return bytes;
}

}  // namespace tessera
