#include "model/alibi.h"

#include <cmath>

namespace tessera {

std::vector<float> alibi_slopes(std::int64_t num_heads) {
  std::int64_t whole = 1;  // the largest power of two up to num_heads
  while (whole * 2 <= num_heads) whole *= 2;
  const auto slope = [](std::int64_t heads, std::int64_t power) {
    // The base is rounded to float before it is raised, as the original's tensors are.
    const auto base = static_cast<float>(std::exp2(-8.0 / static_cast<double>(heads)));
    return static_cast<float>(std::pow(static_cast<double>(base), static_cast<double>(power)));
  };
  std::vector<float> slopes;
  for (std::int64_t i = 1; i <= whole; ++i) slopes.push_back(slope(whole, i));
  for (std::int64_t i = 1; i <= num_heads - whole; ++i) slopes.push_back(slope(2 * whole, 2 * i - 1));
  return slopes;
}

}  // namespace tessera
