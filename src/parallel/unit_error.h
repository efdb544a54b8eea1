// Says where something went wrong: on which rank, in which phase, in which unit.
//
//   in_unit(rank, "forward", unit.name(), [&] { return body(input); });
//
// What `work` throws becomes a UnitError: "rank 2, forward of unit h.3: ...". A UnitError passes unchanged: the
// innermost place is the most exact.
//
// A gradient that is not finite is found by the norm, which shows every rank that the sum over the ranks is not finite,
// but not which rank caused it. So each rank records per unit whether its own gradient was finite before the reduction.
// The ranks exchange these records only when a step is skipped, which all of them do together.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tessera/world.h"

namespace tessera {

class UnitError : public Error {
 public:
  using Error::Error;
};

// Rethrows the current exception with its place. Only within a catch block.
[[noreturn]] void rethrow_in_unit(int rank, std::string_view phase, std::string_view unit);

template <typename Work>
decltype(auto) in_unit(int rank, std::string_view phase, std::string_view unit, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (...) {
    rethrow_in_unit(rank, phase, unit);
  }
}

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
