// An optimizer's update as its loops see it: pointers, sizes, constants. Known to CPU and CUDA files alike. (no torch)
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/number_type.h"

namespace tessera::kernels {

inline constexpr std::size_t kMostStates = 4;

struct FlatUpdate {
  float* params = nullptr;  // float32: the master values; null if there is a remainder
  const void* grads = nullptr;
  NumberType grad_type = NumberType::kFloat32;
  void* copy = nullptr;  // receives the new values, rounded; null: none, and its type does not matter
  NumberType copy_type = NumberType::kFloat32;
  std::int64_t numel = 0;
  float* states[kMostStates] = {};  // in the descriptor's order; null where there is none
  // With the copy, which is then bfloat16, the master values (split_floats.h).
  std::int16_t* remainder = nullptr;
  void* stream = nullptr;  // CUDA's
};

// `constants` is the optimizer's own struct, computed once per update in float64 and rounded to float32, so that every
// processor uses the same.
using FlatUpdateFunction = void (*)(const FlatUpdate& flat, const void* constants);

// A .cu file makes one at namespace scope; it is known when libtessera_cuda.so has been loaded.
struct CudaUpdate {
  CudaUpdate(const char* optimizer, FlatUpdateFunction update);
};

}  // namespace tessera::kernels
