// Which rank's gradient of which unit was not finite: asked after a skipped step.
//
// The norm shows every rank that the sum over the ranks is not finite, but not which rank caused it. So each rank
// records per unit whether its own gradient was finite before the reduction. The ranks exchange these records only when
// a step is skipped, which all of them do together.
#pragma once

#include <string>
#include <vector>

#include "tessera/world.h"

namespace tessera {

struct GradientFault {
  int rank = 0;
  std::string unit;
  bool operator==(const GradientFault&) const = default;
};

// Collective over `all`, which is null for one rank. Sorted by rank, then in the order of backward: the unit where the
// trouble began comes first, the root last. Empty: each rank's gradient was finite, and their sum overflowed.
std::vector<GradientFault> find_gradient_faults(Group* all, at::Device device,
                                                const std::vector<std::string>& unit_names,
                                                const std::vector<bool>& own_is_finite);

// "the gradient is not finite: rank 1 in unit h.3 and 2 others"
std::string describe(const std::vector<GradientFault>& faults);

}  // namespace tessera
