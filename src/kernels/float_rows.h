// Rows of any float type as float32, for loops that are written once: float32 rows are used where they lie, half types
// pass through room of the caller's, which stays in the cache.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <type_traits>

#include "kernels/half_numbers.h"

namespace tessera::kernels {

template <typename T>
inline const float* as_floats(const T* from, float* room, std::int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    return from;
  } else if constexpr (std::is_same_v<T, c10::Half>) {
    half_to_float(from, room, n);
  } else {
    for (std::int64_t i = 0; i < n; ++i) room[i] = static_cast<float>(from[i]);
  }
  return room;
}

// Where to compute what from_floats() takes to `to`.
template <typename T>
inline float* float_room(T* to, float* room) {
  if constexpr (std::is_same_v<T, float>) {
    return to;
  } else {
    return room;
  }
}

template <typename T>
inline void from_floats(const float* from, T* to, std::int64_t n) {
  if constexpr (std::is_same_v<T, c10::Half>) {
    float_to_half(from, to, n);
  } else if constexpr (!std::is_same_v<T, float>) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
  }
}

}  // namespace tessera::kernels
