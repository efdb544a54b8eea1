// Which rank's gradient of which unit was not finite: asked when a step has been skipped for it.
//
// The norm tells every rank that the sum over the ranks is not finite, and not whose fault that is. So each rank
// remembers of each unit whether its own gradient was finite before it was added to the others', and the ranks tell
// each other only when a step is skipped: all of them skip the same steps.
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

// Collective over `all`, null where there is one rank. By rank, within one in the order of backward: the unit where the
// trouble began comes first, the root last. None: each rank's gradient was finite, and their sum overflowed.
std::vector<GradientFault> find_gradient_faults(Group* all, at::Device device,
                                                const std::vector<std::string>& unit_names,
                                                const std::vector<bool>& own_is_finite);

// "the gradient is not finite: rank 1 in unit h.3 and 2 others"
std::string describe(const std::vector<GradientFault>& faults);

}  // namespace tessera
