// How many bytes each kind of a unit's state takes on one rank, on its device and on the host: the one place that
// knows.
//
// The planner prints it, tests hold measured memory against it to the byte.
#pragma once

#include <cstdint>

#include "parallel/flat_layout.h"
#include "parallel/flat_unit.h"
#include "parallel/placement.h"

namespace tessera {

struct UnitBytes {
  // Between steps.
  // In the compute type: whole, the shard, or what goes to the device after an update; both where that is delayed.
  std::int64_t parameters = 0;
  std::int64_t master = 0;  // float32 values, where they are not the parameters themselves
  std::int64_t moments = 0;
  // For a while.
  std::int64_t gathered = 0;     // the whole buffer, where parameters are split
  std::int64_t second_copy = 0;  // this rank's part of it, from forward to the update
  // From the unit's backward to its reduction; through all micro-steps where they are added whole.
  std::int64_t flat_gradient = 0;
  // Reduced, until the update. Where the optimizer is offloaded: on the device between micro-steps, on the host always.
  std::int64_t gradient = 0;

  std::int64_t resident() const { return parameters + master + moments; }
};

// `num_moments`: float32 numbers that the optimizer keeps for each parameter (AdamW 2, SGD with momentum 1, plain SGD
// 0). `ranks_per_node` matters to rows with a second copy.
UnitBytes unit_bytes(const FlatLayout& layout, const Placement& placement, const UnitTypes& types, int num_moments,
                     int ranks_per_node = 1);
// What of it is in host memory where the row offloads.
UnitBytes host_unit_bytes(const FlatLayout& layout, const Placement& placement, const UnitTypes& types,
                          int num_moments);

}  // namespace tessera
