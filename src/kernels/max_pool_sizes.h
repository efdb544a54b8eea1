// What max pooling's kernels and their callers agree on.
#pragma once

#include <cstdint>

namespace tessera::kernels {

inline constexpr int kMaxPoolPack = 8;  // channels that a thread reads at once

inline constexpr std::int64_t pooled_side(std::int64_t side) {
  return (side + 1) / 2;
}

}  // namespace tessera::kernels
