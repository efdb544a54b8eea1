// Splits and joins on a CPU (split_floats.h), by the same rule as on a GPU (optimizers/cuda_update.cuh). Free of
// branches, so that the compiler vectorizes the loops around them.
#pragma once

#include <c10/util/BFloat16.h>

#include <bit>
#include <cstdint>

namespace tessera::kernels {

inline float joined(c10::BFloat16 copy, std::int16_t remainder) {
  return std::bit_cast<float>((std::uint32_t{copy.x} << 16) + static_cast<std::uint32_t>(remainder));
}

inline void split(float value, c10::BFloat16& copy, std::int16_t& remainder) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  bits -= static_cast<std::uint32_t>((bits & 0x1ffffu) == 0x8000u);  // a tie that would be rounded down
  remainder = static_cast<std::int16_t>(bits);
  // Of the ties only those are left that are rounded up.
  const auto rounded = static_cast<std::uint16_t>((bits + 0x8000u) >> 16);
  copy.x = (bits & 0x7fffffffu) > 0x7f800000u ? std::uint16_t{0x7fc0} : rounded;  // NaN stays NaN
}

inline void join_halves(const c10::BFloat16* copies, const std::int16_t* remainders, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = joined(copies[i], remainders[i]);
}

inline void split_to_halves(const float* from, c10::BFloat16* copies, std::int16_t* remainders, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) split(from[i], copies[i], remainders[i]);
}

}  // namespace tessera::kernels
