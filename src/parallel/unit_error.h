// Adds to an error where it happened: on which rank, in which phase, in which unit.
//
//   in_unit(rank, "forward", unit.name(), [&] { return body(input); });
//
// What `work` throws becomes a UnitError: "rank 2, forward of unit h.3: ...". A UnitError passes unchanged: the
// innermost place is the most exact.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

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

}  // namespace tessera
