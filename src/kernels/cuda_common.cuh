// Shared by the .cu files: number types, packs of numbers that move as one word, block sums.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda_launch.h"

namespace tessera::kernels {

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ inline float to_float(__half x) {
  return __half2float(x);
}

template <typename T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

// N numbers read or written at once; the address must be a multiple of the pack's size.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];
};

template <int N, typename T>
__device__ inline Pack<T, N> load(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, typename T>
__device__ inline void store(T* to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

// The sum over a block of whole warps, returned to every thread. `shared`: 32 floats.
__device__ inline float block_sum(float value, float* shared) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  __syncthreads();  // the last use of `shared` is over
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) total += shared[warp];
  return total;
}

// Calls f with a null pointer of the type.
template <typename F>
void with_type(NumberType type, F f) {
  switch (type) {
    case NumberType::kFloat32:
      return f(static_cast<float*>(nullptr));
    case NumberType::kBFloat16:
      return f(static_cast<__nv_bfloat16*>(nullptr));
    case NumberType::kFloat16:
      return f(static_cast<__half*>(nullptr));
  }
}
template <typename F>
void with_half_type(NumberType type, F f) {
  type == NumberType::kBFloat16 ? f(static_cast<__nv_bfloat16*>(nullptr)) : f(static_cast<__half*>(nullptr));
}

}  // namespace tessera::kernels
