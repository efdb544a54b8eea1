// Where each parameter of a unit lies in its flat buffer, and which part each rank owns. Arithmetic only.
//
// docs/design/parallel.md, 'Layout of a unit'.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/flat_buffers.h"

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

}  // namespace tessera
