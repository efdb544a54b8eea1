// AdamW for ARM, by hand. Square roots and divisions are the bottleneck: only two of the four vector pipes have them,
// and a pipe is chosen before it is known to be free. Four of one kind in a row use both pipes; scattered between other
// instructions, as the compiler orders them, they wait for each other (measured on Neoverse V1: 33 GB/s scattered, 37
// GB/s in a row).
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/optimizers/cpu_loops.h"
#include "kernels/optimizers/flat_update.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tessera::kernels {

#if defined(__aarch64__)

namespace internal {

constexpr int kVectors = 4;
constexpr std::int64_t kStep = 4 * kVectors;  // numbers: a cache line of float32

inline float32x4_t load_numbers(const float* from) {
  return vld1q_f32(from);
}
inline float32x4_t load_numbers(const c10::BFloat16* from) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(reinterpret_cast<const std::uint16_t*>(from)), 16));
}
inline float32x4_t load_numbers(const c10::Half* from) {
  return vcvt_f32_f16(vld1_f16(reinterpret_cast<const __fp16*>(from)));
}

inline void take_roots(float32x4_t* x) {
  asm volatile("fsqrt %0.4s, %0.4s\n fsqrt %1.4s, %1.4s\n fsqrt %2.4s, %2.4s\n fsqrt %3.4s, %3.4s"
               : "+w"(x[0]), "+w"(x[1]), "+w"(x[2]), "+w"(x[3]));
}

inline void divide(float32x4_t* x, const float32x4_t* by) {
  asm volatile(
      "fdiv %0.4s, %0.4s, %4.4s\n fdiv %1.4s, %1.4s, %5.4s\n fdiv %2.4s, %2.4s, %6.4s\n fdiv %3.4s, %3.4s, %7.4s"
      : "+w"(x[0]), "+w"(x[1]), "+w"(x[2]), "+w"(x[3])
      : "w"(by[0]), "w"(by[1]), "w"(by[2]), "w"(by[3]));
}

// Rounds to nearest, ties to even; NaN stays NaN.
inline uint16x8_t as_bf16_by_integers(float32x4_t low, float32x4_t high) {
  const auto rounded = [](float32x4_t x) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    return vreinterpretq_u16_u32(vbslq_u32(vceqq_f32(x, x), up, vdupq_n_u32(0x7fc00000)));
  };
  return vuzp2q_u16(rounded(low), rounded(high));
}

// The same with the instruction that newer processors have.
inline uint16x8_t as_bf16(float32x4_t low, float32x4_t high) {
  uint16x8_t result;
  asm(".arch_extension bf16\n bfcvtn %0.4h, %1.4s\n bfcvtn2 %0.8h, %2.4s" : "=&w"(result) : "w"(low), "w"(high));
  return result;
}

inline bool has_bf16() {
  static const bool has = (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
  return has;
}

template <bool kHasBf16>
inline void store_copy(NoCopy*, const float32x4_t*) {}
template <bool kHasBf16>
inline void store_copy(c10::BFloat16* to, const float32x4_t* x) {
  for (int i = 0; i < kVectors; i += 2) {
    vst1q_u16(reinterpret_cast<std::uint16_t*>(to) + 4 * i,
              kHasBf16 ? as_bf16(x[i], x[i + 1]) : as_bf16_by_integers(x[i], x[i + 1]));
  }
}
template <bool kHasBf16>
inline void store_copy(c10::Half* to, const float32x4_t* x) {
  for (int i = 0; i < kVectors; ++i) vst1_f16(reinterpret_cast<__fp16*>(to) + 4 * i, vcvt_f16_f32(x[i]));
}

struct AdamWLanes {
  float32x4_t gradient_scale, l2, keep, one_minus_beta1, beta2, one_minus_beta2, inverse_root, eps, minus_step_size;

  explicit AdamWLanes(const AdamWConstants& k)
      : gradient_scale(vdupq_n_f32(k.gradient_scale)),
        l2(vdupq_n_f32(k.l2)),
        keep(vdupq_n_f32(k.keep)),
        one_minus_beta1(vdupq_n_f32(k.one_minus_beta1)),
        beta2(vdupq_n_f32(k.beta2)),
        one_minus_beta2(vdupq_n_f32(k.one_minus_beta2)),
        inverse_root(vdupq_n_f32(k.inverse_root)),
        eps(vdupq_n_f32(k.eps)),
        minus_step_size(vdupq_n_f32(k.minus_step_size)) {}

  // kStep numbers.
  template <bool kHasBf16, bool kHasL2, typename G, typename C>
  void step(float* params, const G* grads, C* copy, float* mean, float* square_mean) const {
    float32x4_t p[kVectors], g[kVectors], m[kVectors], v[kVectors], denominator[kVectors];
    for (int i = 0; i < kVectors; ++i) {
      g[i] = vmulq_f32(load_numbers(grads + 4 * i), gradient_scale);
      if (kHasL2) g[i] = vfmaq_f32(g[i], l2, vld1q_f32(params + 4 * i));
    }
    for (int i = 0; i < kVectors; ++i) {
      m[i] = vld1q_f32(mean + 4 * i);
      m[i] = vfmaq_f32(m[i], vsubq_f32(g[i], m[i]), one_minus_beta1);
      vst1q_f32(mean + 4 * i, m[i]);
    }
    for (int i = 0; i < kVectors; ++i) {
      v[i] = vfmaq_f32(vmulq_f32(beta2, vld1q_f32(square_mean + 4 * i)), vmulq_f32(one_minus_beta2, g[i]), g[i]);
      vst1q_f32(square_mean + 4 * i, v[i]);
    }
    take_roots(v);
    for (int i = 0; i < kVectors; ++i) denominator[i] = vfmaq_f32(eps, v[i], inverse_root);
    divide(m, denominator);
    for (int i = 0; i < kVectors; ++i) {
      p[i] = vfmaq_f32(vmulq_f32(vld1q_f32(params + 4 * i), keep), minus_step_size, m[i]);
      vst1q_f32(params + 4 * i, p[i]);
    }
    store_copy<kHasBf16>(copy, p);
  }

  template <bool kHasBf16, bool kHasL2, typename G, typename C>
  void run(float* params, const G* grads, C* copy, float* mean, float* square_mean, std::int64_t n) const {
    constexpr bool kCopies = !std::is_same_v<C, NoCopy>;
    std::int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      step<kHasBf16, kHasL2>(params + i, grads + i, kCopies ? copy + i : copy, mean + i, square_mean + i);
    }
    if (i == n) return;
    // The remainder goes through the same instructions, so that it gets the same bits.
    float p[kStep] = {}, m[kStep] = {}, v[kStep] = {};
    G g[kStep] = {};
    C c[kStep] = {};
    const std::int64_t rest = n - i;
    std::copy_n(params + i, rest, p);
    std::copy_n(grads + i, rest, g);
    std::copy_n(mean + i, rest, m);
    std::copy_n(square_mean + i, rest, v);
    step<kHasBf16, kHasL2>(p, g, c, m, v);
    std::copy_n(p, rest, params + i);
    std::copy_n(m, rest, mean + i);
    std::copy_n(v, rest, square_mean + i);
    if constexpr (kCopies) std::copy_n(c, rest, copy + i);
  }
};

}  // namespace internal

template <typename G, typename C>
inline void adamw_neon(float* params, const G* grads, C* copy, float* mean, float* square_mean, std::int64_t n,
                       const AdamWConstants& constants) {
  const internal::AdamWLanes lanes(constants);
  if (constants.l2 != 0) {
    internal::has_bf16() ? lanes.run<true, true>(params, grads, copy, mean, square_mean, n)
                         : lanes.run<false, true>(params, grads, copy, mean, square_mean, n);
  } else {
    internal::has_bf16() ? lanes.run<true, false>(params, grads, copy, mean, square_mean, n)
                         : lanes.run<false, false>(params, grads, copy, mean, square_mean, n);
  }
}

#endif

}  // namespace tessera::kernels
