#include <algorithm>

#include "kernels/cpu_rows.h"
#include "kernels/float_rows.h"
#include "kernels/parallel.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

constexpr float kTwoSqrt2OverPi = 2.0f * 0.79788456f;
constexpr float kCubic = 0.044715f;
constexpr std::int64_t kPiece = 512;  // numbers computed at once: their rooms lie on the stack

// Both activations are x * s, with s = sigmoid(x), or sigmoid(2 u) = (1 + tanh(u)) / 2.
template <GateActivation kActivation>
inline float share(float x) {
  const float u = kActivation == GateActivation::kSilu ? x : kTwoSqrt2OverPi * x * (1.0f + kCubic * x * x);
  return u < -88.0f ? 0.0f : sigmoid(u);  // sigmoid() ends at e^-88, which times 1e38 is not nothing
}

// The derivative of x * s.
template <GateActivation kActivation>
inline float slope(float x, float s) {
  const float of_s = s * (1.0f - s);
  const float inner = kActivation == GateActivation::kSilu ? 1.0f : kTwoSqrt2OverPi * (1.0f + 3.0f * kCubic * x * x);
  return of_s == 0.0f ? s : s + x * of_s * inner;  // where of_s is 0, x * x may be infinite
}

template <typename T, GateActivation kActivation>
inline void forward_row(const T* gate, const T* up, T* out, std::int64_t F) {
  float rooms[3][kPiece];
  for (std::int64_t begin = 0; begin < F; begin += kPiece) {
    const std::int64_t n = std::min(kPiece, F - begin);
    const float* g = as_floats(gate + begin, rooms[0], n);
    const float* u = as_floats(up + begin, rooms[1], n);
    float* result = float_room(out + begin, rooms[2]);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) result[i] = g[i] * share<kActivation>(g[i]) * u[i];
    from_floats(result, out + begin, n);
  }
}

// `out` may be null. Each number of `grad` is read before grad_gate's is written.
template <typename T, GateActivation kActivation>
inline void backward_row(const T* grad, const T* gate, const T* up, T* grad_gate, T* grad_up, T* out, std::int64_t F) {
  float rooms[6][kPiece];
  for (std::int64_t begin = 0; begin < F; begin += kPiece) {
    const std::int64_t n = std::min(kPiece, F - begin);
    const float* d = as_floats(grad + begin, rooms[0], n);
    const float* g = as_floats(gate + begin, rooms[1], n);
    const float* u = as_floats(up + begin, rooms[2], n);
    float* to_gate = float_room(grad_gate + begin, rooms[3]);
    float* to_up = float_room(grad_up + begin, rooms[4]);
    float* result = out == nullptr ? rooms[5] : float_room(out + begin, rooms[5]);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) {
      const float s = share<kActivation>(g[i]), of_up = d[i] * (g[i] * s),
                  of_gate = d[i] * u[i] * slope<kActivation>(g[i], s);
      result[i] = g[i] * s * u[i];
      to_gate[i] = of_gate;
      to_up[i] = of_up;
    }
    from_floats(to_gate, grad_gate + begin, n);
    from_floats(to_up, grad_up + begin, n);
    if (out != nullptr) from_floats(result, out + begin, n);
  }
}

struct Backward {
  const void *grad, *gate, *up;
  void *grad_gate, *grad_up, *out;
};

template <typename T, GateActivation kActivation>
inline void forward_rows(const GatedShape& shape, const void* gate, const void* up, void* out, std::int64_t first,
                         std::int64_t last) {
  for (std::int64_t t = first; t < last; ++t) {
    forward_row<T, kActivation>(static_cast<const T*>(gate) + t * shape.gate_stride,
                                static_cast<const T*>(up) + t * shape.up_stride, static_cast<T*>(out) + t * shape.F,
                                shape.F);
  }
}

template <typename T, GateActivation kActivation>
inline void backward_rows(const GatedShape& shape, const Backward& b, std::int64_t first, std::int64_t last) {
  for (std::int64_t t = first; t < last; ++t) {
    const std::int64_t at = t * shape.F;
    T* out = b.out == nullptr ? nullptr : static_cast<T*>(b.out) + at;
    backward_row<T, kActivation>(static_cast<const T*>(b.grad) + at,
                                 static_cast<const T*>(b.gate) + t * shape.gate_stride,
                                 static_cast<const T*>(b.up) + t * shape.up_stride, static_cast<T*>(b.grad_gate) + at,
                                 static_cast<T*>(b.grad_up) + at, out, shape.F);
  }
}

// Calls f<T, activation>(); a switch inside the vectorised functions, as in bias_gelu_cpu.cc.
template <typename F>
inline void with_case(const GatedShape& shape, F f) {
  const auto with_type = [&](auto activation) {
    switch (shape.type) {
      case c10::kFloat:
        return f(static_cast<float*>(nullptr), activation);
      case c10::kBFloat16:
        return f(static_cast<c10::BFloat16*>(nullptr), activation);
      default:
        return f(static_cast<c10::Half*>(nullptr), activation);
    }
  };
  if (shape.activation == GateActivation::kSilu) {
    with_type(std::integral_constant<GateActivation, GateActivation::kSilu>());
  } else {
    with_type(std::integral_constant<GateActivation, GateActivation::kGelu>());
  }
}

TESSERA_VECTORISED
void forward_part(const GatedShape& shape, const void* gate, const void* up, void* out, std::int64_t first,
                  std::int64_t last) {
  with_case(shape, [=](auto* null, auto activation) {
    forward_rows<std::remove_pointer_t<decltype(null)>, decltype(activation)::value>(shape, gate, up, out, first, last);
  });
}

TESSERA_VECTORISED
void backward_part(const GatedShape& shape, const Backward& b, std::int64_t first, std::int64_t last) {
  with_case(shape, [=](auto* null, auto activation) {
    backward_rows<std::remove_pointer_t<decltype(null)>, decltype(activation)::value>(shape, b, first, last);
  });
}

std::int64_t grain_of(const GatedShape& shape) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, shape.F));
}

}  // namespace

void gated_forward_cpu(const GatedShape& shape, const void* gate, const void* up, void* out) {
  parallel_for(0, shape.T, grain_of(shape),
               [&](std::int64_t first, std::int64_t last) { forward_part(shape, gate, up, out, first, last); });
}

void gated_backward_cpu(const GatedShape& shape, const void* grad, const void* gate, const void* up, void* grad_gate,
                        void* grad_up, void* out) {
  const Backward b{grad, gate, up, grad_gate, grad_up, out};
  parallel_for(0, shape.T, grain_of(shape),
               [&](std::int64_t first, std::int64_t last) { backward_part(shape, b, first, last); });
}

}  // namespace tessera::kernels
