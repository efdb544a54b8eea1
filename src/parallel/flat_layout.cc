#include "parallel/flat_layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tessera {
namespace {

// 64 bytes in a half type: an alignment that suits tensor cores and vector instructions.
constexpr std::int64_t kAlignment = 32;

std::int64_t aligned(std::int64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
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

}  // namespace tessera
