#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 128;
constexpr float kTwoSqrt2OverPi = 2.0f * 0.79788456f;
constexpr float kCubic = 0.044715f;

// Both activations are x * s, with s = sigmoid(x), or sigmoid(2 u) = (1 + tanh(u)) / 2.
template <GateActivation kActivation>
__device__ inline float share(float x) {
  const float u = kActivation == GateActivation::kSilu ? x : kTwoSqrt2OverPi * x * (1.0f + kCubic * x * x);
  return 1.0f / (1.0f + __expf(-u));
}

// The derivative of x * s.
template <GateActivation kActivation>
__device__ inline float slope(float x, float s) {
  const float of_s = s * (1.0f - s);
  const float inner = kActivation == GateActivation::kSilu ? 1.0f : kTwoSqrt2OverPi * (1.0f + 3.0f * kCubic * x * x);
  return of_s == 0.0f ? s : s + x * of_s * inner;  // where of_s is 0, x * x may be infinite
}

// A thread stays at its columns.
template <typename T, int N, GateActivation kActivation>
__global__ void forward(CudaGated gated) {
  const std::int64_t c = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N;
  if (c >= gated.F) return;
  const T *gate = static_cast<const T*>(gated.gate) + c, *up = static_cast<const T*>(gated.up) + c;
  T* out = static_cast<T*>(gated.out) + c;
#pragma unroll 4
  for (std::int64_t t = blockIdx.y; t < gated.T; t += gridDim.y) {
    const auto gs = load<N>(gate + t * gated.gate_stride);
    const auto us = load<N>(up + t * gated.up_stride);
    Pack<T, N> result;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float g = to_float(gs.values[n]);
      result.values[n] = from_float<T>(g * share<kActivation>(g) * to_float(us.values[n]));
    }
    store<N>(out + t * gated.F, result);
  }
}

// grad_gate may be grad: each thread reads a number before it writes it.
template <typename T, int N, GateActivation kActivation>
__global__ void backward(CudaGated gated) {
  const std::int64_t c = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N;
  if (c >= gated.F) return;
  const T *gate = static_cast<const T*>(gated.gate) + c, *up = static_cast<const T*>(gated.up) + c;
  for (std::int64_t t = blockIdx.y; t < gated.T; t += gridDim.y) {
    const std::int64_t at = t * gated.F + c;
    const auto ds = load<N>(static_cast<const T*>(gated.grad) + at);
    const auto gs = load<N>(gate + t * gated.gate_stride);
    const auto us = load<N>(up + t * gated.up_stride);
    Pack<T, N> to_gate, to_up, product;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float d = to_float(ds.values[n]), g = to_float(gs.values[n]), u = to_float(us.values[n]);
      const float s = share<kActivation>(g);
      to_gate.values[n] = from_float<T>(d * u * slope<kActivation>(g, s));
      to_up.values[n] = from_float<T>(d * (g * s));
      product.values[n] = from_float<T>(g * s * u);
    }
    store<N>(static_cast<T*>(gated.grad_gate) + at, to_gate);
    store<N>(static_cast<T*>(gated.grad_up) + at, to_up);
    if (gated.out != nullptr) store<N>(static_cast<T*>(gated.out) + at, product);
  }
}

template <typename T, int N, GateActivation kActivation>
void run(const CudaGated& gated) {
  constexpr std::int64_t kRowsAThread = 4, kMostBlocks = 65535;
  const std::int64_t blocks = (gated.T + kRowsAThread - 1) / kRowsAThread;
  const dim3 grid(static_cast<unsigned>((gated.F + N * kThreads - 1) / (N * kThreads)),
                  static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks));
  const auto kernel = gated.grad == nullptr ? forward<T, N, kActivation> : backward<T, N, kActivation>;
  kernel<<<grid, kThreads, 0, gated.stream>>>(gated);
}

void run_any(const CudaGated& gated) {
  with_type(gated.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int kWord = 16 / sizeof(T);
    if (gated.activation == GateActivation::kSilu) {
      gated.aligned ? run<T, kWord, GateActivation::kSilu>(gated) : run<T, 1, GateActivation::kSilu>(gated);
    } else {
      gated.aligned ? run<T, kWord, GateActivation::kGelu>(gated) : run<T, 1, GateActivation::kGelu>(gated);
    }
  });
}

}  // namespace

void gated_forward_cuda(const CudaGated& gated) {
  run_any(gated);
}

void gated_backward_cuda(const CudaGated& gated) {
  run_any(gated);
}

}  // namespace tessera::kernels
