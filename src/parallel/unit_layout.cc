#include "parallel/unit_layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "model/step_memory.h"

namespace tessera {
namespace {

// 64 bytes in a half type: an alignment that suits tensor cores and vector instructions.
constexpr std::int64_t kAlignment = 32;

std::int64_t aligned(std::int64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

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

FlatRange intersect(FlatRange a, FlatRange b) {
  const FlatRange common{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return common.empty() ? FlatRange{common.begin, common.begin} : common;
}

FlatLayout::FlatLayout(const std::vector<Entry>& entries, int num_shards) : num_shards_(num_shards) {
  entry_of_slot_.resize(entries.size());
  std::iota(entry_of_slot_.begin(), entry_of_slot_.end(), std::size_t{0});
  std::stable_sort(entry_of_slot_.begin(), entry_of_slot_.end(),
                   [&](std::size_t a, std::size_t b) { return entries[a].group < entries[b].group; });
  for (std::size_t i : entry_of_slot_) {
    const Entry& entry = entries[i];
    FlatSlot slot{entry.name, entry.shape, aligned(numel_), 1};
    slot.numel = std::accumulate(entry.shape.begin(), entry.shape.end(), std::int64_t{1}, std::multiplies<>());
    numel_ = slot.offset + slot.numel;
    FlatRange& range = ranges_[static_cast<std::size_t>(entry.group)];
    if (range.empty()) range.begin = slot.offset;
    range.end = numel_;
    slots_.push_back(std::move(slot));
  }
}

UnitBytes unit_bytes(const FlatLayout& layout, const Placement& row, const UnitTypes& types, int num_moments,
                     int ranks_per_node, bool on_gpu) {
  const Placement placement = row.in_shards(layout.num_shards());
  const Numels n = numels_of(layout, placement);
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
  bytes.flat_gradient = n.whole * size_of(types.of_flat_gradient(placement));
  if (!placement.optimizer.is_on_host() || types.accumulates) {
    bytes.gradient = n.updated * size_of(types.of_gradient());
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
    bytes.gradient = n.updated * size_of(types.of_gradient());
  }
  return bytes;
}

}  // namespace tessera
