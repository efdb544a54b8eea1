// What the optimizers' CPU loops share. All files of this folder are compiled with -ffp-contract=off: multiplications
// and additions are fused where it is written and nowhere else, so that a number gets the same bits in the vector part
// and in the remainder of a loop, on every processor with fused ones.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/half_numbers.h"
#include "kernels/optimizers/flat_update.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {

struct NoCopy {};  // where no half-type copy is written

inline float fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);  // a * b + c, rounded once
}

// Without decay an infinite parameter must not make its gradient NaN.
inline float scaled_gradient(float gradient, float scale, float decay, float param) {
  return decay == 0 ? gradient * scale : fused(decay, param, gradient * scale);
}

// float16 and masters in halves (flat_buffers.h) pass through float32 in the first-level cache.
inline constexpr std::int64_t kHalfBlock = 1024;

// Calls step(begin, n, params, grads, copy) for parts of [begin, end); the pointers are typed and of that part.
template <typename F>
inline void with_types(const FlatUpdate& flat, std::int64_t begin, std::int64_t end, F step) {
  const bool half_grads = flat.grad_type == NumberType::kFloat16, is_split = flat.remainder != nullptr,
             half_copy = flat.copy != nullptr && flat.copy_type == NumberType::kFloat16;
  const std::int64_t part = half_grads || half_copy || is_split ? kHalfBlock : end - begin;
  auto* bfloats = static_cast<c10::BFloat16*>(flat.copy);
  float as_float[kHalfBlock], masters[kHalfBlock];
  for (std::int64_t at = begin; at < end; at += part) {
    const std::int64_t n = std::min(part, end - at);
    float* params = is_split ? masters : flat.params + at;
    const auto with_copy = [&](const auto* grads) {
      const bool writes_copy = flat.copy != nullptr && !half_copy && !is_split;
      if (!writes_copy) return step(at, n, params, grads, static_cast<NoCopy*>(nullptr));
      step(at, n, params, grads, bfloats + at);
    };
    if (is_split) join_halves(bfloats + at, flat.remainder + at, masters, n);
    if (half_grads) half_to_float(static_cast<const c10::Half*>(flat.grads) + at, as_float, n);
    if (flat.grad_type == NumberType::kBFloat16) {
      with_copy(static_cast<const c10::BFloat16*>(flat.grads) + at);
    } else {
      with_copy(half_grads ? as_float : static_cast<const float*>(flat.grads) + at);
    }
    if (half_copy) float_to_half(params, static_cast<c10::Half*>(flat.copy) + at, n);
    if (is_split) split_to_halves(masters, bfloats + at, flat.remainder + at, n);
  }
}

}  // namespace tessera::kernels
