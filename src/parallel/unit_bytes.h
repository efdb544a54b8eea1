// How many bytes each kind of a unit's state takes on one rank, on its device and on the host.
//
// The planner prints these numbers; tests compare them with measured memory, to the byte.
#pragma once

#include <cstdint>

#include "parallel/flat_layout.h"
#include "parallel/flat_unit.h"
#include "parallel/placement.h"

namespace tessera {

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
