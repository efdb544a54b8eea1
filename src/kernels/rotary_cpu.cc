#include <algorithm>

#include "kernels/cpu_rows.h"
#include "kernels/float_rows.h"
#include "kernels/parallel.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

constexpr std::int64_t kPairs = 256;  // rotated at once: their rooms lie on the stack

template <typename T>
inline void rotate_head(const T* x, const float* cos, const float* sin, float sign, T* out, std::int64_t half) {
  float rooms[4][kPairs];
  for (std::int64_t begin = 0; begin < half; begin += kPairs) {
    const std::int64_t n = std::min(kPairs, half - begin);
    const float* a = as_floats(x + begin, rooms[0], n);
    const float* b = as_floats(x + half + begin, rooms[1], n);
    T *out_a = out + begin, *out_b = out + half + begin;
    float *to_a = float_room(out_a, rooms[2]), *to_b = float_room(out_b, rooms[3]);
    const float *cs = cos + begin, *sn = sin + begin;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) {
      const float s = sign * sn[i];
      to_a[i] = a[i] * cs[i] - b[i] * s;
      to_b[i] = b[i] * cs[i] + a[i] * s;
    }
    from_floats(to_a, out_a, n);
    from_floats(to_b, out_b, n);
  }
}

template <typename T>
inline void rotate_tokens(const RotaryShape& shape, const void* x, const float* cos, const float* sin, void* out,
                          std::int64_t first, std::int64_t last) {
  const float sign = shape.back ? -1.0f : 1.0f;
  for (std::int64_t t = first; t < last; ++t) {
    for (std::int64_t head = 0; head < shape.H; ++head) {
      const T* from = static_cast<const T*>(x) + t * shape.token_stride + head * shape.head_stride;
      T* to = static_cast<T*>(out) + (t * shape.H + head) * shape.D;
      rotate_head(from, cos + t * shape.half, sin + t * shape.half, sign, to, shape.half);
      std::copy(from + 2 * shape.half, from + shape.D, to + 2 * shape.half);
    }
  }
}

TESSERA_VECTORISED
void rotary_part(const RotaryShape& shape, const void* x, const float* cos, const float* sin, void* out,
                 std::int64_t first, std::int64_t last) {
  switch (shape.type) {
    case c10::kFloat:
      return rotate_tokens<float>(shape, x, cos, sin, out, first, last);
    case c10::kBFloat16:
      return rotate_tokens<c10::BFloat16>(shape, x, cos, sin, out, first, last);
    default:
      return rotate_tokens<c10::Half>(shape, x, cos, sin, out, first, last);
  }
}

}  // namespace

void rotary_cpu(const RotaryShape& shape, const void* x, const float* cos, const float* sin, void* out) {
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, shape.H * shape.D));
  parallel_for(0, shape.T, grain,
               [&](std::int64_t first, std::int64_t last) { rotary_part(shape, x, cos, sin, out, first, last); });
}

}  // namespace tessera::kernels
