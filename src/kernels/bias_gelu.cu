#include "kernels/column_sums.cuh"

namespace tessera::kernels {
namespace {

constexpr float kSqrt2OverPi = 0.79788456f;
constexpr float kCubic = 0.044715f;
constexpr int kThreads = 128;

// (1 + tanh(u)) / 2 is the sigmoid of 2 u.
__device__ inline float gate(float y) {
  return 1.0f / (1.0f + __expf(-2.0f * kSqrt2OverPi * y * (1.0f + kCubic * y * y)));
}

// With s = gate(y).
__device__ inline float gelu_derivative(float y, float s) {
  // s * (1 - s) is 0 where s is, though y * y may be infinite there.
  const float slope = s * (1.0f - s);
  return slope == 0.0f ? s : s + y * slope * (2.0f * kSqrt2OverPi) * (1.0f + 3.0f * kCubic * y * y);
}

// A thread stays at its columns, whose bias it reads once.
template <typename T, int N>
__global__ void forward(const T* x, const T* bias, T* out, std::int64_t num_rows, std::int64_t C) {
  const std::int64_t c = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N;
  if (c >= C) return;
  const auto biases = load<N>(bias + c);
#pragma unroll 4
  for (std::int64_t row = blockIdx.y; row < num_rows; row += gridDim.y) {
    const auto xs = load<N>(x + row * C + c);
    Pack<T, N> result;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float y = to_float(xs.values[n]) + to_float(biases.values[n]);
      result.values[n] = from_float<T>(y * gate(y));
    }
    store<N>(out + row * C + c, result);
  }
}

// grad_x may be grad: each thread reads a number before it writes it.
template <typename T, int N>
__global__ void backward(const T* grad, const T* x, const T* bias, T* grad_x, T* out, float* partial,
                         std::int64_t num_rows, std::int64_t C) {
  add_rows_of_block<1, N>(num_rows, C, partial, [&](std::int64_t row, std::int64_t c, float(&sums)[1][N]) {
    const auto biases = load<N>(bias + c);
    const auto grads = load<N>(grad + row * C + c);
    const auto xs = load<N>(x + row * C + c);
    Pack<T, N> result, activated;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float y = to_float(xs.values[n]) + to_float(biases.values[n]), s = gate(y);
      const float d = to_float(grads.values[n]) * gelu_derivative(y, s);
      result.values[n] = from_float<T>(d);
      activated.values[n] = from_float<T>(y * s);
      sums[0][n] += d;
    }
    store<N>(grad_x + row * C + c, result);
    if (out != nullptr) store<N>(out + row * C + c, activated);
  });
}

template <typename T, int N>
void run_forward(const CudaRows& rows, const void* x, const void* bias, void* out) {
  constexpr std::int64_t kRowsAThread = 8, kMostBlocks = 65535;
  const std::int64_t blocks = (rows.num_rows + kRowsAThread - 1) / kRowsAThread;
  const dim3 grid(static_cast<unsigned>((rows.C / N + kThreads - 1) / kThreads),
                  static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks));
  forward<T, N><<<grid, kThreads, 0, rows.stream>>>(static_cast<const T*>(x), static_cast<const T*>(bias),
                                                    static_cast<T*>(out), rows.num_rows, rows.C);
}

template <typename T, int N>
void run_backward(const CudaRows& rows, const void* grad, const void* x, const void* bias, void* grad_x, void* out,
                  void* grad_bias, float* partial) {
  backward<T, N><<<column_grid(rows, N), kColumnThreads, 0, rows.stream>>>(
      static_cast<const T*>(grad), static_cast<const T*>(x), static_cast<const T*>(bias), static_cast<T*>(grad_x),
      static_cast<T*>(out), partial, rows.num_rows, rows.C);
  launch_add_row_blocks<T>(rows, partial, {{grad_bias}}, 1);
}

}  // namespace

void bias_gelu_forward_cuda(const CudaRows& rows, const void* x, const void* bias, void* out) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int kWord = 16 / sizeof(T);
    const auto run = rows.aligned && rows.C % kWord == 0 ? run_forward<T, kWord> : run_forward<T, 1>;
    run(rows, x, bias, out);
  });
}

void bias_gelu_backward_cuda(const CudaRows& rows, const void* grad, const void* x, const void* bias, void* grad_x,
                             void* out, void* grad_bias, float* partial) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int kWord = 16 / sizeof(T);
    const auto run = rows.aligned && rows.C % kWord == 0 ? run_backward<T, kWord> : run_backward<T, 1>;
    run(rows, grad, x, bias, grad_x, out, grad_bias, partial);
  });
}

}  // namespace tessera::kernels
