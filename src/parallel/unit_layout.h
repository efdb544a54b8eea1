// What never changes about a unit: where each parameter lies in its flat buffer and which part each rank owns, where
// its state lives and which ranks share it, and how many bytes each kind of its state takes.
//
// docs/design/parallel.md, 'Layout of a unit'.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/strides.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/flat_buffers.h"
#include "parallel/offload.h"
#include "parallel/placement.h"
#include "parallel/step_clock.h"
#include "tessera/world.h"

namespace tessera {

// Shards consist of whole blocks of the norm's sums.
inline constexpr std::int64_t kBlockNumel = kernels::kNormBlock;

struct FlatRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t numel() const { return end - begin; }
  bool empty() const { return end <= begin; }
};
FlatRange intersect(FlatRange a, FlatRange b);

// How the optimizer treats a parameter. In the buffer the groups come in this order.
enum class ParameterGroup { kDecaying, kPlain, kFrozen };  // updated with weight decay, without it, not updated
inline constexpr int kNumParameterGroups = 3;

struct FlatSlot {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0, numel = 0;
};

class FlatLayout {
 public:
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    ParameterGroup group = ParameterGroup::kDecaying;
  };
  // `num_shards` is at least 1. Slots are ordered by group, then as the entries.
  FlatLayout(const std::vector<Entry>& entries, int num_shards);

  const std::vector<FlatSlot>& slots() const { return slots_; }
  // Each slot's index into the constructor's entries.
  const std::vector<std::size_t>& entry_of_slot() const { return entry_of_slot_; }

  std::int64_t numel() const { return numel_; }  // up to the end of the last parameter
  int num_shards() const { return num_shards_; }
  std::int64_t shard_numel() const { return shard_blocks() * kBlockNumel; }
  std::int64_t padded_numel() const { return shard_numel() * num_shards_; }
  std::int64_t num_blocks() const { return (numel_ + kBlockNumel - 1) / kBlockNumel; }
  std::int64_t shard_blocks() const { return (num_blocks() + num_shards_ - 1) / num_shards_; }
  FlatRange shard(int rank) const { return {rank * shard_numel(), (rank + 1) * shard_numel()}; }
  FlatRange whole() const { return {0, padded_numel()}; }
  // The elements of one group. After the last group comes padding.
  FlatRange range_of(ParameterGroup group) const { return ranges_[static_cast<std::size_t>(group)]; }
  // Less than an eighth of the unit: such gradients wait for each other before they go into the flat one.
  bool is_small_part(std::int64_t numel) const { return numel * 8 < numel_; }

 private:
  std::vector<FlatSlot> slots_;
  std::vector<std::size_t> entry_of_slot_;
  std::array<FlatRange, kNumParameterGroups> ranges_;
  std::int64_t numel_ = 0;
  int num_shards_;
};

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

  // Of a unit's flat gradient: float32 if micro-steps are added up before the reduction.
  at::ScalarType of_flat_gradient(const Placement& row) const {
    return accumulates && !row.gradients.is_split() ? at::kFloat : reduce;
  }
  at::ScalarType of_gradient() const { return accumulates ? at::kFloat : reduce; }  // reduced
};

// Whether master values are kept as the bfloat16 parameters and a remainder (kernels/flat_buffers.h): in runs on a GPU,
// where the optimizer has such parameters beside it, its own or a copy. An offloaded update is bound by the host's
// memory: AdamW then moves 26 bytes per number, not 30 (with those that a write of the copy alone reads first). Delayed
// updates write to one of two copies in turn.
inline bool keeps_remainder(const UnitTypes& types, const Placement& row, bool on_gpu) {
  return on_gpu && types.compute == at::kBFloat16 && !row.delayed_update &&
         (row.optimizer.is_on_host() || !row.parameters.is_on_host());
}

struct UnitCommon {
  Placement placement;  // the row adapted to this number of shards
  UnitGroups groups;
  UnitTypes types;
  at::Device device;     // where units compute
  const HostLink* link;  // null if nothing is offloaded
  StepClock* clock;      // what waits is timed by
};

struct UnitContext : UnitCommon {
  std::string name;
  FlatLayout layout;

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

// On one rank. The planner adds these numbers up; tests compare them with measured memory, to the byte.
struct UnitBytes {
  // Between steps.
  // In the compute type: whole, the shard, or what is uploaded after an update; two copies if updates are delayed.
  std::int64_t parameters = 0;
  std::int64_t master = 0;  // float32 values, or what they have more than the parameters
  std::int64_t moments = 0;
  // During a step.
  std::int64_t gathered = 0;     // the whole buffer, if parameters are split
  std::int64_t second_copy = 0;  // this rank's part of it, from forward to the update
  // From the unit's backward to its reduction; through all micro-steps if they are added whole.
  std::int64_t flat_gradient = 0;
  // Reduced, until the update. With an offloaded optimizer: on the device between micro-steps, on the host always.
  std::int64_t gradient = 0;

  std::int64_t resident() const { return parameters + master + moments; }
};

// `num_moments`: float32 numbers that the optimizer keeps per parameter (AdamW 2, SGD with momentum 1, plain SGD 0).
// `ranks_per_node` matters only for rows with a second copy.
UnitBytes unit_bytes(const FlatLayout& layout, const Placement& placement, const UnitTypes& types, int num_moments,
                     int ranks_per_node, bool on_gpu);
// What an offloading row keeps in host memory.
UnitBytes host_unit_bytes(const FlatLayout& layout, const Placement& placement, const UnitTypes& types, int num_moments,
                          bool on_gpu);

}  // namespace tessera
