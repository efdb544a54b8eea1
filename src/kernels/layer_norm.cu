#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 128;

// One block per row; its second and third pass find the row in the first-level cache.
template <typename T, int N>
__global__ void forward(const T* x, const T* residual, const T* weight, const T* bias, float eps, T* sum, T* out,
                        float* mean, float* inverse_deviation, std::int64_t C) {
  __shared__ float shared[32];
  const std::int64_t row = blockIdx.x, begin = row * C;
  const T* values = residual == nullptr ? x + begin : sum + begin;
  float total = 0;
  for (std::int64_t c = threadIdx.x * N; c < C; c += blockDim.x * N) {
    auto xs = load<N>(x + begin + c);
    if (residual != nullptr) {
      const auto rs = load<N>(residual + begin + c);
#pragma unroll
      for (int n = 0; n < N; ++n) xs.values[n] = from_float<T>(to_float(xs.values[n]) + to_float(rs.values[n]));
      store<N>(sum + begin + c, xs);  // read again by the same thread
    }
#pragma unroll
    for (int n = 0; n < N; ++n) total += to_float(xs.values[n]);
  }
  const float m = block_sum(total, shared) / static_cast<float>(C);
  float squares = 0;
  for (std::int64_t c = threadIdx.x * N; c < C; c += blockDim.x * N) {
    const auto xs = load<N>(values + c);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float d = to_float(xs.values[n]) - m;
      squares += d * d;
    }
  }
  const float r = rsqrtf(block_sum(squares, shared) / static_cast<float>(C) + eps);
  for (std::int64_t c = threadIdx.x * N; c < C; c += blockDim.x * N) {
    const auto xs = load<N>(values + c);
    const auto ws = load<N>(weight + c);
    const auto bs = load<N>(bias + c);
    Pack<T, N> result;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      result.values[n] =
          from_float<T>((to_float(xs.values[n]) - m) * r * to_float(ws.values[n]) + to_float(bs.values[n]));
    }
    store<N>(out + begin + c, result);
  }
  if (threadIdx.x == 0) {
    mean[row] = m;
    inverse_deviation[row] = r;
  }
}

template <typename T, int N>
__global__ void backward_x(const T* grad, const T* grad_sum, const T* x, const T* weight, const float* mean,
                           const float* inverse_deviation, T* grad_x, std::int64_t C) {
  __shared__ float shared[32];
  const std::int64_t row = blockIdx.x, begin = row * C;
  const float m = mean[row], r = inverse_deviation[row];
  float ones = 0, normed = 0;
  for (std::int64_t c = threadIdx.x * N; c < C; c += blockDim.x * N) {
    const auto gs = load<N>(grad + begin + c);
    const auto xs = load<N>(x + begin + c);
    const auto ws = load<N>(weight + c);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float scaled = to_float(gs.values[n]) * to_float(ws.values[n]);
      ones += scaled;
      normed += scaled * (to_float(xs.values[n]) - m) * r;
    }
  }
  const float along_one = block_sum(ones, shared) / static_cast<float>(C);
  const float along_normed = block_sum(normed, shared) / static_cast<float>(C);
  for (std::int64_t c = threadIdx.x * N; c < C; c += blockDim.x * N) {
    const auto gs = load<N>(grad + begin + c);
    const auto xs = load<N>(x + begin + c);
    const auto ws = load<N>(weight + c);
    Pack<T, N> extra, result;
    if (grad_sum != nullptr) extra = load<N>(grad_sum + begin + c);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float scaled = to_float(gs.values[n]) * to_float(ws.values[n]);
      const float d = r * (scaled - along_one - (to_float(xs.values[n]) - m) * r * along_normed);
      result.values[n] = from_float<T>(grad_sum == nullptr ? d : d + to_float(extra.values[n]));
    }
    store<N>(grad_x + begin + c, result);
  }
}

// A thread handles N columns of kCudaRowBlock rows: the sums for weight and bias.
template <typename T, int N>
__global__ void backward_parameters(const T* grad, const T* x, const float* mean, const float* inverse_deviation,
                                    float* weight_partial, float* bias_partial, std::int64_t num_rows, std::int64_t C) {
  const std::int64_t c = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (c >= C) return;
  float weights[N] = {}, biases[N] = {};
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kCudaRowBlock;
  for (std::int64_t row = first; row < min(num_rows, first + kCudaRowBlock); ++row) {
    const auto gs = load<N>(grad + row * C + c);
    const auto xs = load<N>(x + row * C + c);
    const float m = mean[row], r = inverse_deviation[row];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float g = to_float(gs.values[n]);
      weights[n] += g * (to_float(xs.values[n]) - m) * r;
      biases[n] += g;
    }
  }
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.y) * C + c;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    weight_partial[at + n] = weights[n];
    bias_partial[at + n] = biases[n];
  }
}

template <typename T, int N>
void run_forward(const CudaRows& rows, const void* x, const void* residual, const void* weight, const void* bias,
                 float eps, void* sum, void* out, float* mean, float* inverse_deviation) {
  forward<T, N><<<static_cast<unsigned>(rows.num_rows), kThreads, 0, rows.stream>>>(
      static_cast<const T*>(x), static_cast<const T*>(residual), static_cast<const T*>(weight),
      static_cast<const T*>(bias), eps, static_cast<T*>(sum), static_cast<T*>(out), mean, inverse_deviation, rows.C);
}

template <typename T, int N>
void run_backward(const CudaRows& rows, const void* grad, const void* grad_sum, const void* x, const void* weight,
                  const float* mean, const float* inverse_deviation, void* grad_x, void* grad_weight, void* grad_bias,
                  float* partial) {
  backward_x<T, N><<<static_cast<unsigned>(rows.num_rows), kThreads, 0, rows.stream>>>(
      static_cast<const T*>(grad), static_cast<const T*>(grad_sum), static_cast<const T*>(x),
      static_cast<const T*>(weight), mean, inverse_deviation, static_cast<T*>(grad_x), rows.C);
  float* bias_partial = partial + num_row_blocks(rows.num_rows) * rows.C;
  const dim3 grid(static_cast<unsigned>((rows.C / N + kThreads - 1) / kThreads),
                  static_cast<unsigned>(num_row_blocks(rows.num_rows)));
  backward_parameters<T, N><<<grid, kThreads, 0, rows.stream>>>(static_cast<const T*>(grad), static_cast<const T*>(x),
                                                                mean, inverse_deviation, partial, bias_partial,
                                                                rows.num_rows, rows.C);
  launch_add_row_blocks<T>(rows, partial, grad_weight);
  launch_add_row_blocks<T>(rows, bias_partial, grad_bias);
}

}  // namespace

void layer_norm_forward_cuda(const CudaRows& rows, const void* x, const void* residual, const void* weight,
                             const void* bias, float eps, void* sum, void* out, float* mean, float* inverse_deviation) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto run = rows.aligned && rows.C % 4 == 0 ? run_forward<T, 4> : run_forward<T, 1>;
    run(rows, x, residual, weight, bias, eps, sum, out, mean, inverse_deviation);
  });
}

void layer_norm_backward_cuda(const CudaRows& rows, const void* grad, const void* grad_sum, const void* x,
                              const void* weight, const float* mean, const float* inverse_deviation, void* grad_x,
                              void* grad_weight, void* grad_bias, float* partial) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto run = rows.aligned && rows.C % 4 == 0 ? run_backward<T, 4> : run_backward<T, 1>;
    run(rows, grad, grad_sum, x, weight, mean, inverse_deviation, grad_x, grad_weight, grad_bias, partial);
  });
}

}  // namespace tessera::kernels
