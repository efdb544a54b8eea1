#include "kernels/column_sums.cuh"

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
__global__ void backward_x(CudaNormBackward norm, std::int64_t C) {
  __shared__ float shared[32];
  const std::int64_t row = blockIdx.x, begin = row * C;
  const T *grad = static_cast<const T*>(norm.grad) + begin, *x = static_cast<const T*>(norm.x) + begin;
  const T *weight = static_cast<const T*>(norm.weight), *bias = static_cast<const T*>(norm.bias);
  const float m = norm.mean[row], r = norm.inverse_deviation[row];
  float ones = 0, normed = 0;
  for (std::int64_t c = threadIdx.x * N; c < C; c += blockDim.x * N) {
    const auto gs = load<N>(grad + c);
    const auto xs = load<N>(x + c);
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
    const auto gs = load<N>(grad + c);
    const auto xs = load<N>(x + c);
    const auto ws = load<N>(weight + c);
    Pack<T, N> extra, result;
    if (norm.grad_sum != nullptr) extra = load<N>(static_cast<const T*>(norm.grad_sum) + begin + c);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float scaled = to_float(gs.values[n]) * to_float(ws.values[n]);
      const float d = r * (scaled - along_one - (to_float(xs.values[n]) - m) * r * along_normed);
      result.values[n] = from_float<T>(norm.grad_sum == nullptr ? d : d + to_float(extra.values[n]));
    }
    store<N>(static_cast<T*>(norm.grad_x) + begin + c, result);
    if (norm.out == nullptr) continue;
    const auto bs = load<N>(bias + c);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      result.values[n] =
          from_float<T>((to_float(xs.values[n]) - m) * r * to_float(ws.values[n]) + to_float(bs.values[n]));
    }
    store<N>(static_cast<T*>(norm.out) + begin + c, result);
  }
}

// The sums for weight and bias; with K = 4 also those of grad_sum and grad_x.
template <typename T, int N, int K>
__global__ void backward_parameters(CudaNormBackward norm, std::int64_t num_rows, std::int64_t C) {
  const T *grad = static_cast<const T*>(norm.grad), *x = static_cast<const T*>(norm.x);
  const auto add = [&](std::int64_t row, std::int64_t c, float(&sums)[K][N]) {
    const auto gs = load<N>(grad + row * C + c);
    const auto xs = load<N>(x + row * C + c);
    const float m = norm.mean[row], r = norm.inverse_deviation[row];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float g = to_float(gs.values[n]);
      sums[0][n] += g * (to_float(xs.values[n]) - m) * r;
      sums[1][n] += g;
    }
    if constexpr (K == 4) {
      const auto of_sum = load<N>(static_cast<const T*>(norm.grad_sum) + row * C + c);
      const auto of_x = load<N>(static_cast<const T*>(norm.grad_x) + row * C + c);
#pragma unroll
      for (int n = 0; n < N; ++n) {
        sums[2][n] += to_float(of_sum.values[n]);
        sums[3][n] += to_float(of_x.values[n]);
      }
    }
  };
  add_rows_of_block<K, N>(num_rows, C, norm.partial, add);
}

template <typename T, int N>
void run_forward(const CudaRows& rows, const void* x, const void* residual, const void* weight, const void* bias,
                 float eps, void* sum, void* out, float* mean, float* inverse_deviation) {
  forward<T, N><<<static_cast<unsigned>(rows.num_rows), kThreads, 0, rows.stream>>>(
      static_cast<const T*>(x), static_cast<const T*>(residual), static_cast<const T*>(weight),
      static_cast<const T*>(bias), eps, static_cast<T*>(sum), static_cast<T*>(out), mean, inverse_deviation, rows.C);
}

template <typename T, int N>
void run_backward(const CudaRows& rows, const CudaNormBackward& norm) {
  backward_x<T, N><<<static_cast<unsigned>(rows.num_rows), kThreads, 0, rows.stream>>>(norm, rows.C);
  const bool with_gradients = norm.grad_sums != nullptr;
  const auto kernel = with_gradients ? backward_parameters<T, N, 4> : backward_parameters<T, N, 2>;
  kernel<<<column_grid(rows, N), kColumnThreads, 0, rows.stream>>>(norm, rows.num_rows, rows.C);
  launch_add_row_blocks<T>(rows, norm.partial, {{norm.grad_weight, norm.grad_bias, norm.grad_sums, norm.grad_x_sums}},
                           with_gradients ? 4 : 2);
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

void layer_norm_backward_cuda(const CudaRows& rows, const CudaNormBackward& norm) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto run = rows.aligned && rows.C % 4 == 0 ? run_backward<T, 4> : run_backward<T, 1>;
    run(rows, norm);
  });
}

}  // namespace tessera::kernels
