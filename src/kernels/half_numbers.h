// Rows of half types from and to float32 on a CPU.
//
// float16 with the processor's own instructions: compilers do not vectorize these conversions. bfloat16 with its
// remainder (flat_buffers.h) by the same rule as on a GPU (optimizers/cuda_update.cuh), free of branches, so that the
// compiler vectorizes the loops around it.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <bit>
#include <cstdint>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera::kernels {

#if defined(__aarch64__)

inline void half_to_float(const c10::Half* from, float* to, std::int64_t n) {
  const auto* numbers = reinterpret_cast<const __fp16*>(from);
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) vst1q_f32(to + i, vcvt_f32_f16(vld1_f16(numbers + i)));
  for (; i < n; ++i) to[i] = static_cast<float>(numbers[i]);
}

inline void float_to_half(const float* from, c10::Half* to, std::int64_t n) {
  auto* numbers = reinterpret_cast<__fp16*>(to);
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) vst1_f16(numbers + i, vcvt_f16_f32(vld1q_f32(from + i)));
  for (; i < n; ++i) numbers[i] = static_cast<__fp16>(from[i]);
}

#else

namespace internal {

inline void half_to_float_plain(const c10::Half* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

inline void float_to_half_plain(const float* from, c10::Half* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<c10::Half>(from[i]);
}

#if defined(__x86_64__)

__attribute__((target("avx,f16c"))) inline void half_to_float_f16c(const c10::Half* from, float* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  half_to_float_plain(from + i, to + i, n - i);
}

__attribute__((target("avx,f16c"))) inline void float_to_half_f16c(const float* from, c10::Half* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  float_to_half_plain(from + i, to + i, n - i);
}

inline bool has_f16c() {
  static const bool has = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
  return has;
}

#endif

}  // namespace internal

inline void half_to_float(const c10::Half* from, float* to, std::int64_t n) {
#if defined(__x86_64__)
  if (internal::has_f16c()) return internal::half_to_float_f16c(from, to, n);
#endif
  internal::half_to_float_plain(from, to, n);
}

inline void float_to_half(const float* from, c10::Half* to, std::int64_t n) {
#if defined(__x86_64__)
  if (internal::has_f16c()) return internal::float_to_half_f16c(from, to, n);
#endif
  internal::float_to_half_plain(from, to, n);
}

#endif

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
