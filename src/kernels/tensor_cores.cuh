// The tensor cores' instructions, bf16 or fp16 in, float32 out: mma.sync, Ampere's, for a warp's 16 rows, and wgmma,
// Hopper's, for the 64 rows of four warps, which reads its right factor from shared memory by itself and runs beside
// other instructions.
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
// wgmma belongs to sm_90a alone, for which attention.cu is compiled too. A test defines this as 0.
#ifndef TESSERA_WGMMA
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define TESSERA_WGMMA 1
#else
#define TESSERA_WGMMA 0
#endif
#endif

namespace tessera::kernels {

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

// 16 columns of sums as a left factor: the first 8, the last 8.
template <typename T>
__device__ inline LeftFactor rounded(const Accumulator& near, const Accumulator& far) {
  return {{pack_two<T>(near.values[0], near.values[1]), pack_two<T>(near.values[2], near.values[3]),
           pack_two<T>(far.values[0], far.values[1]), pack_two<T>(far.values[2], far.values[3])}};
}

#if TESSERA_WGMMA

#define TESSERA_SUMS_4(c) "+f"((c).values[0]), "+f"((c).values[1]), "+f"((c).values[2]), "+f"((c).values[3])
#define TESSERA_SUMS_8(c, i) TESSERA_SUMS_4((c)[i]), TESSERA_SUMS_4((c)[(i) + 1])
#define TESSERA_SUMS_16(c, i) TESSERA_SUMS_8(c, i), TESSERA_SUMS_8(c, (i) + 2)
#define TESSERA_SUMS_32(c) TESSERA_SUMS_16(c, 0), TESSERA_SUMS_16(c, 4)
#define TESSERA_LEFT(a) "r"((a).words[0]), "r"((a).words[1]), "r"((a).words[2]), "r"((a).words[3])

#define TESSERA_32_REGISTERS                                 \
  " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"

#define TESSERA_WGMMA_16(type)                                                     \
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32." type "." type         \
               " {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, %13, 1, 1, %14;" \
               : TESSERA_SUMS_8(c, 0)                                              \
               : TESSERA_LEFT(a), "l"(b), "n"(kAdds), "n"(kTransposed))
#define TESSERA_WGMMA_32(type)                                                                           \
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type                               \
               " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19}, %20, %21, " \
               "1, 1, %22;"                                                                              \
               : TESSERA_SUMS_16(c, 0)                                                                   \
               : TESSERA_LEFT(a), "l"(b), "n"(kAdds), "n"(kTransposed))
#define TESSERA_WGMMA_64(type)                                                                  \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type TESSERA_32_REGISTERS \
               ", {%32,%33,%34,%35}, %36, %37, 1, 1, %38;"                                      \
               : TESSERA_SUMS_32(c)                                                             \
               : TESSERA_LEFT(a), "l"(b), "n"(kAdds), "n"(kTransposed))
#define TESSERA_WGMMA_64_OF_TILES(type)                                                         \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type TESSERA_32_REGISTERS \
               ", %32, %33, %34, 1, 1, 0, 0;"                                                   \
               : TESSERA_SUMS_32(c)                                                             \
               : "l"(a), "l"(b), "n"(kAdds))

// A factor in shared memory that begins at `first`, in a panel with rows of kWords: wgmma's matrix descriptor, whose
// second field counts only where words are not swizzled.
template <int kWords>
__device__ inline std::uint64_t factor_at(const void* first) {
  constexpr std::uint64_t kUnused = 1, kEightRows = kWords * 8, kSwizzling = kWords == 8 ? 1 : kWords == 4 ? 2 : 3;
  return static_cast<std::uint64_t>((shared_address(first) & 0x3FFFF) / 16) | kUnused << 16 | kEightRows << 32 |
         kSwizzling << 62;
}

// c[64, N] = a[64, 16] b[16, N], or += with kAdds. N: 16, 32 or 64. kTransposed: b's rows lie along N, else along the
// sum.
template <typename T, int N, bool kAdds, bool kTransposed>
__device__ inline void begin_multiply(Accumulator* c, const LeftFactor& a, std::uint64_t b) {
  constexpr bool kIsBFloat16 = std::is_same_v<T, __nv_bfloat16>;
  if constexpr (N == 64) {
    if constexpr (kIsBFloat16) TESSERA_WGMMA_64("bf16");
    if constexpr (!kIsBFloat16) TESSERA_WGMMA_64("f16");
  } else if constexpr (N == 32) {
    if constexpr (kIsBFloat16) TESSERA_WGMMA_32("bf16");
    if constexpr (!kIsBFloat16) TESSERA_WGMMA_32("f16");
  } else {
    static_assert(N == 16);
    if constexpr (kIsBFloat16) TESSERA_WGMMA_16("bf16");
    if constexpr (!kIsBFloat16) TESSERA_WGMMA_16("f16");
  }
}
template <typename T, bool kAdds>
__device__ inline void begin_multiply_of_tiles(Accumulator* c, std::uint64_t a, std::uint64_t b) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) TESSERA_WGMMA_64_OF_TILES("bf16");
  if constexpr (!std::is_same_v<T, __nv_bfloat16>) TESSERA_WGMMA_64_OF_TILES("f16");
}

__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

#endif

}  // namespace tessera::kernels
