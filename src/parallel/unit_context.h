// What never changes about a unit: its name and layout, where its state lives and which ranks share it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/strides.h>

#include <string>

#include "parallel/flat_layout.h"
#include "parallel/host_link.h"
#include "parallel/placement.h"
#include "parallel/step_clock.h"
#include "tessera/world.h"

namespace tessera {

// The ranks that a unit is spread over. Null: only this rank.
struct UnitGroups {
  Group* shard = nullptr;
  Group* replicas = nullptr;     // the ranks that hold the same shard on other nodes
  Group* second_copy = nullptr;  // the ranks that share a second copy of the parameters, for backward
  int num_shards() const { return shard == nullptr ? 1 : shard->size(); }
  bool is_alone() const { return shard == nullptr && replicas == nullptr; }
  int shard_rank() const { return shard == nullptr ? 0 : shard->rank(); }
};

struct UnitTypes {
  at::ScalarType compute = at::kFloat;  // what the module computes in and gathers carry
  at::ScalarType reduce = at::kFloat;   // what reductions carry
  bool accumulates = false;             // several micro-steps per update: gradients are added in float32
};

// Whether master values are kept as the bfloat16 parameters and a remainder (kernels/flat_buffers.h): in runs on a GPU,
// where the optimizer has such parameters beside it, its own or a copy. An offloaded update is bound by the host's
// memory: AdamW then moves 26 bytes per number, not 30 (with those that a write of the copy alone reads first). Delayed
// updates write to one of two copies in turn.
inline bool keeps_remainder(const UnitTypes& types, const Placement& row, bool on_gpu) {
  return on_gpu && types.compute == at::kBFloat16 && !row.delayed_update &&
         (row.optimizer.is_on_host() || !row.parameters.is_on_host());
}

struct UnitContext {
  std::string name;
  FlatLayout layout;
  Placement placement;  // the row adapted to this number of shards
  UnitGroups groups;
  UnitTypes types;
  at::Device device;     // where the unit computes
  const HostLink* link;  // null if nothing is offloaded
  StepClock* clock;      // what waits is timed by

  FlatRange own_shard() const { return layout.shard(groups.shard_rank()); }
  // What this rank's optimizer updates: its shard, or everything.
  FlatRange updated() const { return placement.optimizer.is_split() ? own_shard() : layout.whole(); }
  // This rank's part of the second copy.
  FlatRange own_part_of_second_copy() const {
    const std::int64_t numel = layout.padded_numel() / groups.second_copy->size();
    return {groups.second_copy->rank() * numel, (groups.second_copy->rank() + 1) * numel};
  }
  at::TensorOptions on_device(at::ScalarType type) const { return at::dtype(type).device(device); }
};

inline at::Tensor part_of(const at::Tensor& whole, FlatRange range) {
  return whole.narrow(0, range.begin, range.numel());
}
// One operation, not narrow() and view(): a step of a GPU asks for hundreds.
inline at::Tensor view_of(const at::Tensor& flat, const FlatSlot& slot) {
  return flat.as_strided(slot.shape, c10::contiguous_strides(slot.shape), flat.storage_offset() + slot.offset);
}

}  // namespace tessera
