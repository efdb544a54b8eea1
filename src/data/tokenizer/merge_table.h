// Maps pairs of tokens to the rank of their merge and the token it makes: open addressing, two or three probes per
// lookup.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tessera::internal {

struct Merge {
  std::uint32_t rank;
  std::int32_t token;
};

class MergeTable {
 public:
  static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

  explicit MergeTable(std::size_t num_merges = 0) {
    std::size_t size = 16;
    while (size < 2 * num_merges) size *= 2;
    slots_.resize(size);
  }

  // At most as often as the constructor was told. A pair already present is overwritten: the last one wins.
  void add(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& slot = slots_[place(left, right)];
    slot = {left, right, merge};
  }

  // Rank kNoRank if there is no such merge.
  Merge find(std::int32_t left, std::int32_t right) const { return slots_[place(left, right)].merge; }

 private:
  struct Slot {
    std::int32_t left = -1, right = -1;
    Merge merge{kNoRank, -1};
  };

  std::size_t place(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
    std::uint64_t hash = key * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].left != -1 && (slots_[at].left != left || slots_[at].right != right)) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }

  std::vector<Slot> slots_;
};

}  // namespace tessera::internal
