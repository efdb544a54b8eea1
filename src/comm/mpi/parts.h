// What the message-based collectives share: how a buffer is cut, and the order of the peers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "comm/mpi/flow.h"

namespace tessera {

// A buffer cut into one part per rank: all equal except the last ones, which may be short or empty.
struct Parts {
  std::int64_t numel;
  int size;
  std::int64_t stride() const { return (numel + size - 1) / size; }
  std::int64_t begin(int rank) const { return std::min(numel, rank * stride()); }
  std::int64_t length(int rank) const { return std::min(numel, (rank + 1) * stride()) - begin(rank); }
};

// The `distance`-th peer behind or ahead: every rank starts with a different one, so that no rank is flooded.
inline int ahead(const MpiFlow& flow, int distance) {
  return (flow.rank + distance) % flow.size;
}
inline int behind(const MpiFlow& flow, int distance) {
  return (flow.rank + flow.size - distance) % flow.size;
}

}  // namespace tessera
