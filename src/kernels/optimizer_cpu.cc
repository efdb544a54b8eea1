// Compiled with -ffp-contract=off: multiplications and additions are fused only where written so. A number therefore
// gets the same bits in the vector part and in the remainder of a loop, on every processor with fused instructions.
#include "kernels/optimizer_cpu.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>

#include "kernels/adamw_neon.h"
#include "kernels/half_numbers.h"
#include "kernels/parallel.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

// The fewest numbers per thread: starting a thread costs as much as a few thousand.
constexpr std::int64_t kGrain = 32768;

inline float fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);  // a * b + c, rounded once
}

// Without decay an infinite parameter must not make its gradient NaN.
inline float scaled_gradient(float gradient, float scale, float decay, float param) {
  return decay == 0 ? gradient * scale : fused(decay, param, gradient * scale);
}

template <typename G, typename C>
[[maybe_unused]] inline void adamw_range(float* __restrict params, const G* __restrict grads, C* __restrict copy,
                                         float* __restrict mean, float* __restrict square_mean, std::int64_t n,
                                         const AdamWConstants& by) {
  const AdamWConstants k = by;  // in registers
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = scaled_gradient(static_cast<float>(grads[i]), k.gradient_scale, k.l2, params[i]);
    const float m = fused(g - mean[i], k.one_minus_beta1, mean[i]);
    const float v = fused(k.one_minus_beta2 * g, g, k.beta2 * square_mean[i]);
    const float denominator = fused(__builtin_sqrtf(v), k.inverse_root, k.eps);
    const float p = fused(k.minus_step_size, m / denominator, params[i] * k.keep);
    mean[i] = m;
    square_mean[i] = v;
    params[i] = p;
    if constexpr (!std::is_same_v<C, NoCopy>) copy[i] = static_cast<C>(p);
  }
}

template <typename G, typename C>
inline void sgd_range(float* __restrict params, const G* __restrict grads, C* __restrict copy,
                      float* __restrict momentum, std::int64_t n, const SgdConstants& by) {
  const SgdConstants k = by;
  const auto finish = [&](std::int64_t i, float direction) {
    const float p = fused(k.minus_learning_rate, direction, params[i]);
    params[i] = p;
    if constexpr (!std::is_same_v<C, NoCopy>) copy[i] = static_cast<C>(p);
  };
  const auto gradient = [&](std::int64_t i) {
    return scaled_gradient(static_cast<float>(grads[i]), k.gradient_scale, k.weight_decay, params[i]);
  };
  if (!k.has_momentum) {
    for (std::int64_t i = 0; i < n; ++i) finish(i, gradient(i));
    return;
  }
  const float ahead = k.nesterov ? k.momentum : 0.0f;
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient(i);
    const float old = k.keep_momentum == 0.0f ? 0.0f : momentum[i];
    const float buffer = fused(k.keep_momentum, old, k.undampened * g);
    momentum[i] = buffer;
    finish(i, k.nesterov ? fused(ahead, buffer, g) : buffer);
  }
}

// float16 passes through float32 in the first-level cache.
constexpr std::int64_t kHalfBlock = 1024;

// Calls step(begin, n, grads, copy) for parts of [begin, end); grads and copy are typed and point at that part.
template <typename F>
inline void with_types(const FlatStep& flat, std::int64_t begin, std::int64_t end, F step) {
  const bool half_grads = flat.grad_type == c10::kHalf,
             half_copy = flat.copy != nullptr && flat.copy_type == c10::kHalf;
  const std::int64_t part = half_grads || half_copy ? kHalfBlock : end - begin;
  float as_float[kHalfBlock];
  for (std::int64_t at = begin; at < end; at += part) {
    const std::int64_t n = std::min(part, end - at);
    const auto with_copy = [&](const auto* grads) {
      if (flat.copy == nullptr || half_copy) return step(at, n, grads, static_cast<NoCopy*>(nullptr));
      step(at, n, grads, static_cast<c10::BFloat16*>(flat.copy) + at);
    };
    if (half_grads) half_to_float(static_cast<const c10::Half*>(flat.grads) + at, as_float, n);
    if (flat.grad_type == c10::kBFloat16) {
      with_copy(static_cast<const c10::BFloat16*>(flat.grads) + at);
    } else {
      with_copy(half_grads ? as_float : static_cast<const float*>(flat.grads) + at);
    }
    if (half_copy) float_to_half(flat.params + at, static_cast<c10::Half*>(flat.copy) + at, n);
  }
}

#if defined(__aarch64__)

// Calls f with typed pointers to gradients and copy.
template <typename F>
inline void with_all_types(const FlatStep& flat, std::int64_t begin, F f) {
  const auto with_copy = [&](const auto* grads) {
    if (flat.copy == nullptr) return f(grads + begin, static_cast<NoCopy*>(nullptr));
    if (flat.copy_type == c10::kBFloat16) return f(grads + begin, static_cast<c10::BFloat16*>(flat.copy) + begin);
    f(grads + begin, static_cast<c10::Half*>(flat.copy) + begin);
  };
  if (flat.grad_type == c10::kFloat) return with_copy(static_cast<const float*>(flat.grads));
  if (flat.grad_type == c10::kBFloat16) return with_copy(static_cast<const c10::BFloat16*>(flat.grads));
  with_copy(static_cast<const c10::Half*>(flat.grads));
}

void adamw_part(const FlatStep& flat, float* mean, float* square_mean, const AdamWConstants& constants,
                std::int64_t begin, std::int64_t end) {
  with_all_types(flat, begin, [&](const auto* grads, auto* copy) {
    adamw_neon(flat.params + begin, grads, copy, mean + begin, square_mean + begin, end - begin, constants);
  });
}

#else

TESSERA_VECTORISED
void adamw_part(const FlatStep& flat, float* mean, float* square_mean, const AdamWConstants& constants,
                std::int64_t begin, std::int64_t end) {
  with_types(flat, begin, end, [&](std::int64_t at, std::int64_t n, const auto* grads, auto* copy) {
    adamw_range(flat.params + at, grads, copy, mean + at, square_mean + at, n, constants);
  });
}

#endif

TESSERA_VECTORISED
void sgd_part(const FlatStep& flat, float* momentum, const SgdConstants& constants, std::int64_t begin,
              std::int64_t end) {
  with_types(flat, begin, end, [&](std::int64_t at, std::int64_t n, const auto* grads, auto* copy) {
    sgd_range(flat.params + at, grads, copy, momentum == nullptr ? nullptr : momentum + at, n, constants);
  });
}

}  // namespace

void adamw_cpu(const FlatStep& flat, float* mean, float* square_mean, const AdamWConstants& constants) {
  parallel_for(0, flat.numel, kGrain, [&](std::int64_t begin, std::int64_t end) {
    adamw_part(flat, mean, square_mean, constants, begin, end);
  });
}

void sgd_cpu(const FlatStep& flat, float* momentum, const SgdConstants& constants) {
  parallel_for(0, flat.numel, kGrain,
               [&](std::int64_t begin, std::int64_t end) { sgd_part(flat, momentum, constants, begin, end); });
}

}  // namespace tessera::kernels
