// Products of small tiles on the tensor cores (mma.sync, Ampere and newer): 16 rows a warp, bf16 or fp16 in, float32
// out. A tile lies in shared memory, kTileRows rows of D numbers, padded so that no two rows of a load meet in one
// bank.
#pragma once

#include <cstdint>

#include "kernels/cuda_common.cuh"

// These instructions came with compute capability 7.5 to 8.0. For older GPUs the kernels are compiled too, but never
// launched: is_ampere() in cuda_adapters.cc.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define TESSERA_AMPERE(...) __trap()
#else
#define TESSERA_AMPERE(...) asm volatile(__VA_ARGS__)
#endif

namespace tessera::kernels {

inline constexpr int kTileRows = 64;
inline constexpr int kTileThreads = 128;  // four warps of 16 rows

template <int D>
inline constexpr int kTileStride = D + 8;  // in numbers

// A warp's 16 x 8 part of a product: lane l has columns 2 (l % 4) and the next, of rows l / 4 and l / 4 + 8.
struct Accumulator {
  float values[4];
};
// A warp's 16 x 16 left factor, as mma takes it.
struct LeftFactor {
  std::uint32_t words[4];
};

template <typename T>
__device__ inline void multiply_add(Accumulator& c, const LeftFactor& a, std::uint32_t b0, std::uint32_t b1) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    TESSERA_AMPERE(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c.values[0]), "+f"(c.values[1]), "+f"(c.values[2]), "+f"(c.values[3])
        : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b0), "r"(b1));
  } else {
    TESSERA_AMPERE(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c.values[0]), "+f"(c.values[1]), "+f"(c.values[2]), "+f"(c.values[3])
        : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b0), "r"(b1));
  }
}

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Four 8 x 8 blocks; each lane gives the address of one row of one block.
__device__ inline void load_blocks(const void* row, std::uint32_t (&words)[4]) {
  TESSERA_AMPERE("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared_address(row)));
}
__device__ inline void load_blocks_transposed(const void* row, std::uint32_t (&words)[4]) {
  TESSERA_AMPERE("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared_address(row)));
}

// c[16, 64] += a[16, D] b[64, D]^T; `a` is the first of the warp's 16 rows.
template <typename T, int D>
__device__ inline void add_rows_by_rows(Accumulator (&c)[kTileRows / 8], const T* a, const T* b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const T* a_row = a + (lane % 16) * kTileStride<D> + lane / 16 * 8;
  const T* b_row = b + (lane % 8 + lane / 16 * 8) * kTileStride<D> + lane / 8 % 2 * 8;
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    LeftFactor left;
    load_blocks(a_row + k, left.words);
#pragma unroll
    for (int n = 0; n < kTileRows; n += 16) {
      std::uint32_t right[4];
      load_blocks(b_row + n * kTileStride<D> + k, right);
      multiply_add<T>(c[n / 8], left, right[0], right[1]);
      multiply_add<T>(c[n / 8 + 1], left, right[2], right[3]);
    }
  }
}

template <typename T>
__device__ inline std::uint32_t pack_two(float low, float high) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(two);
  } else {
    const __half2 two = __floats2half2_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(two);
  }
}

// c[16, D] += p[16, 64] b[64, D], p rounded to T.
template <typename T, int D>
__device__ inline void add_product(Accumulator (&c)[D / 8], const Accumulator (&p)[kTileRows / 8], const T* b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const T* b_row = b + lane % 16 * kTileStride<D> + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < kTileRows; k += 16) {
    const Accumulator &near = p[k / 8], &far = p[k / 8 + 1];
    const LeftFactor left = {{pack_two<T>(near.values[0], near.values[1]), pack_two<T>(near.values[2], near.values[3]),
                              pack_two<T>(far.values[0], far.values[1]), pack_two<T>(far.values[2], far.values[3])}};
#pragma unroll
    for (int n = 0; n < D; n += 16) {
      std::uint32_t right[4];
      load_blocks_transposed(b_row + k * kTileStride<D> + n, right);
      multiply_add<T>(c[n / 8], left, right[0], right[1]);
      multiply_add<T>(c[n / 8 + 1], left, right[2], right[3]);
    }
  }
}

// Starts copying rows of D numbers into a tile; rows from `num_rows` on become zeros.
template <typename T, int D>
__device__ inline void start_tile(T* tile, const T* from, std::int64_t row_stride, int num_rows) {
  constexpr int kWords = D / 8;  // of 16 bytes, a row
  for (int i = threadIdx.x; i < kTileRows * kWords; i += kTileThreads) {
    const int row = i / kWords, word = i % kWords;
    const bool exists = row < num_rows;
    TESSERA_AMPERE(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(tile + row * kTileStride<D> + word * 8)),
        "l"(from + (exists ? row : 0) * row_stride + word * 8), "r"(exists ? 16 : 0));
  }
}

// The copies started since the last call are one group.
__device__ inline void end_group() {
  TESSERA_AMPERE("cp.async.commit_group;");
}
// Waits until at most `newest` groups are under way, and for the other threads to have arrived.
template <int newest>
__device__ inline void wait_for_tiles() {
  TESSERA_AMPERE("cp.async.wait_group %0;" ::"n"(newest));
  __syncthreads();
}

// A warp's 16 rows of D numbers, times `factor`, to global memory; rows from `num_rows` on are left out.
template <typename T, int D>
__device__ inline void store_rows(const Accumulator (&c)[D / 8], float factor_low, float factor_high, T* to,
                                  std::int64_t row_stride, int num_rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4;
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
    const int column = n * 8 + lane % 4 * 2;
    const float* x = c[n].values;
    if (row < num_rows) {
      *reinterpret_cast<std::uint32_t*>(to + row * row_stride + column) =
          pack_two<T>(x[0] * factor_low, x[1] * factor_low);
    }
    if (row + 8 < num_rows) {
      *reinterpret_cast<std::uint32_t*>(to + (row + 8) * row_stride + column) =
          pack_two<T>(x[2] * factor_high, x[3] * factor_high);
    }
  }
}

}  // namespace tessera::kernels
