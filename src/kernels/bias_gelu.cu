#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr float kSqrt2OverPi = 0.79788456f;
constexpr float kCubic = 0.044715f;
constexpr int kThreads = 128;

// (1 + tanh(u)) / 2 is the sigmoid of 2 u.
__device__ inline float gate(float y) {
  return 1.0f / (1.0f + __expf(-2.0f * kSqrt2OverPi * y * (1.0f + kCubic * y * y)));
}

__device__ inline float gelu_derivative(float y) {
  const float s = gate(y);
  // s * (1 - s) is 0 where s is, though y * y may be infinite there.
  const float slope = s * (1.0f - s);
  return slope == 0.0f ? s : s + y * slope * (2.0f * kSqrt2OverPi) * (1.0f + 3.0f * kCubic * y * y);
}

template <typename T, int N>
__global__ void forward(const T* x, const T* bias, T* out, std::int64_t numel, std::int64_t C) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x * N;
  for (std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * N; i < numel; i += step) {
    const auto xs = load<N>(x + i);
    const auto biases = load<N>(bias + i % C);
    Pack<T, N> result;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float y = to_float(xs.values[n]) + to_float(biases.values[n]);
      result.values[n] = from_float<T>(y * gate(y));
    }
    store<N>(out + i, result);
  }
}

// A thread handles N columns of kCudaRowBlock rows.
template <typename T, int N>
__global__ void backward(const T* grad, const T* x, const T* bias, T* grad_x, float* partial, std::int64_t num_rows,
                         std::int64_t C) {
  const std::int64_t c = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (c >= C) return;
  const auto biases = load<N>(bias + c);
  float sums[N] = {};
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kCudaRowBlock;
  for (std::int64_t row = first; row < min(num_rows, first + kCudaRowBlock); ++row) {
    const auto grads = load<N>(grad + row * C + c);
    const auto xs = load<N>(x + row * C + c);
    Pack<T, N> result;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float d = to_float(grads.values[n]) * gelu_derivative(to_float(xs.values[n]) + to_float(biases.values[n]));
      result.values[n] = from_float<T>(d);
      sums[n] += d;
    }
    store<N>(grad_x + row * C + c, result);
  }
#pragma unroll
  for (int n = 0; n < N; ++n) partial[static_cast<std::int64_t>(blockIdx.y) * C + c + n] = sums[n];
}

template <typename T, int N>
void run_forward(const CudaRows& rows, const void* x, const void* bias, void* out) {
  const std::int64_t numel = rows.num_rows * rows.C;
  const std::int64_t blocks = (numel / N + kThreads - 1) / kThreads;
  forward<T, N><<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), kThreads, 0, rows.stream>>>(
      static_cast<const T*>(x), static_cast<const T*>(bias), static_cast<T*>(out), numel, rows.C);
}

template <typename T, int N>
void run_backward(const CudaRows& rows, const void* grad, const void* x, const void* bias, void* grad_x,
                  void* grad_bias, float* partial) {
  const dim3 grid(static_cast<unsigned>((rows.C / N + kThreads - 1) / kThreads),
                  static_cast<unsigned>(num_row_blocks(rows.num_rows)));
  backward<T, N><<<grid, kThreads, 0, rows.stream>>>(static_cast<const T*>(grad), static_cast<const T*>(x),
                                                     static_cast<const T*>(bias), static_cast<T*>(grad_x), partial,
                                                     rows.num_rows, rows.C);
  launch_add_row_blocks<T>(rows, partial, grad_bias);
}

}  // namespace

void bias_gelu_forward_cuda(const CudaRows& rows, const void* x, const void* bias, void* out) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    rows.aligned&& rows.C % 4 == 0 ? run_forward<T, 4>(rows, x, bias, out) : run_forward<T, 1>(rows, x, bias, out);
  });
}

void bias_gelu_backward_cuda(const CudaRows& rows, const void* grad, const void* x, const void* bias, void* grad_x,
                             void* grad_bias, float* partial) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    rows.aligned&& rows.C % 4 == 0 ? run_backward<T, 4>(rows, grad, x, bias, grad_x, grad_bias, partial)
                                   : run_backward<T, 1>(rows, grad, x, bias, grad_x, grad_bias, partial);
  });
}

}  // namespace tessera::kernels
