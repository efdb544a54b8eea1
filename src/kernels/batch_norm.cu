// Batch norm over [num_rows, C], a row for each pixel. Sums over the rows: each block adds its packs, a second kernel
// adds the blocks' sums in double. Every order is fixed.
#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = kBatchNormThreads;
constexpr int N = kBatchNormPack;
constexpr int kGroups = kThreads / 32;
using Then = BatchNormThen;

// A thread comes to packs of the same N columns only, since kThreads is a multiple of C / N.
struct Walk {
  int column;
  std::int64_t first, step, end;  // in packs

  __device__ explicit Walk(const CudaBatchNorm& n)
      : column(static_cast<int>(threadIdx.x) % (n.C / N) * N),
        first(static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x),
        step(static_cast<std::int64_t>(gridDim.x) * kThreads),
        end(n.num_rows * (n.C / N)) {}
};

// Of the thread's columns.
struct Columns {
  float values[N];

  __device__ Columns(const float* of_channels, const Walk& walk) {
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = of_channels[walk.column + i];
  }
  __device__ float operator[](int i) const {
    return values[i];
  }
};

struct Norm {
  Columns mean, inverse_deviation, weight, bias;

  __device__ Norm(const CudaBatchNorm& n, const Walk& walk)
      : mean(n.mean, walk), inverse_deviation(n.inverse_deviation, walk), weight(n.weight, walk), bias(n.bias, walk) {}
  __device__ float normed(float x, int i) const { return (x - mean[i]) * inverse_deviation[i]; }
  // The same bits in forward and backward.
  __device__ float result(float x, int i) const { return fmaf(normed(x, i), weight[i], bias[i]); }
};

// partial[2][gridDim.x][C]: the block's sums.
__device__ inline void add_threads(const float (&sums)[2][N], const CudaBatchNorm& n) {
  __shared__ float shared[2][kThreads][N];
#pragma unroll
  for (int k = 0; k < 2; ++k) {
#pragma unroll
    for (int i = 0; i < N; ++i) shared[k][threadIdx.x][i] = sums[k][i];
  }
  __syncthreads();
  const int packs = n.C / N;
  for (int at = static_cast<int>(threadIdx.x); at < 2 * n.C; at += kThreads) {
    const int k = at / n.C, c = at % n.C;
    float total = 0;
    for (int thread = c / N; thread < kThreads; thread += packs) total += shared[k][thread][c % N];
    n.partial[(static_cast<std::int64_t>(k) * gridDim.x + blockIdx.x) * n.C + c] = total;
  }
}

// The values and their squares, both less the first row, so that little is lost where the mean is far from 0.
template <typename T>
__global__ void __launch_bounds__(kThreads) add_values(CudaBatchNorm n) {
  const Walk walk(n);
  const T* const x = static_cast<const T*>(n.x);
  const auto first_row = load<N>(x + walk.column);
  float sums[2][N] = {};
#pragma unroll 4
  for (std::int64_t at = walk.first; at < walk.end; at += walk.step) {
    const auto xs = load<N>(x + at * N);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float d = to_float(xs.values[i]) - to_float(first_row.values[i]);
      sums[0][i] += d;
      sums[1][i] += d * d;
    }
  }
  add_threads(sums, n);
}

template <typename T, Then kThen>
__global__ void __launch_bounds__(kThreads) normalise(CudaBatchNorm n) {
  const Walk walk(n);
  const Norm norm(n, walk);
#pragma unroll 4
  for (std::int64_t at = walk.first; at < walk.end; at += walk.step) {
    const auto xs = load<N>(static_cast<const T*>(n.x) + at * N);
    Pack<T, N> added, result;
    if constexpr (kThen == Then::kAddRelu) added = load<N>(static_cast<const T*>(n.residual) + at * N);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float y = norm.result(to_float(xs.values[i]), i);
      if constexpr (kThen == Then::kAddRelu) y += to_float(added.values[i]);
      if constexpr (kThen != Then::kNothing) y = y <= 0 ? 0.0f : y;  // what is not a number stays so
      result.values[i] = from_float<T>(y);
    }
    store<N>(static_cast<T*>(n.out) + at * N, result);
  }
}

// The gradient before the ReLU.
template <typename T, Then kThen>
__device__ inline float let_through(T grad, T x, T out, const Norm& norm, int i) {
  if constexpr (kThen == Then::kNothing) return to_float(grad);
  const float y = kThen == Then::kAddRelu ? to_float(out) : to_float(from_float<T>(norm.result(to_float(x), i)));
  return y <= 0 ? 0.0f : to_float(grad);
}

// Sums of the gradient, and of its products with the normed values. With an addition the gradient before the ReLU is
// the residual's too, and is kept.
template <typename T, Then kThen>
__global__ void __launch_bounds__(kThreads) add_gradients(CudaBatchNorm n) {
  const Walk walk(n);
  const Norm norm(n, walk);
  float sums[2][N] = {};
#pragma unroll 2
  for (std::int64_t at = walk.first; at < walk.end; at += walk.step) {
    const auto gs = load<N>(static_cast<const T*>(n.grad) + at * N), xs = load<N>(static_cast<const T*>(n.x) + at * N);
    Pack<T, N> outs{}, kept;
    if constexpr (kThen == Then::kAddRelu) outs = load<N>(static_cast<const T*>(n.out) + at * N);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float g = let_through<T, kThen>(gs.values[i], xs.values[i], outs.values[i], norm, i);
      kept.values[i] = from_float<T>(g);
      sums[0][i] += g;
      sums[1][i] += g * norm.normed(to_float(xs.values[i]), i);
    }
    if constexpr (kThen == Then::kAddRelu) store<N>(static_cast<T*>(n.grad_residual) + at * N, kept);
  }
  add_threads(sums, n);
}

template <typename T, Then kThen>
__global__ void __launch_bounds__(kThreads) gradient_of_x(CudaBatchNorm n) {
  const Walk walk(n);
  const Norm norm(n, walk);
  const Columns of_weight(n.grad_weight, walk), of_bias(n.grad_bias, walk);
  const float share = 1.0f / static_cast<float>(n.num_rows);
  constexpr bool kIsKept = kThen == Then::kAddRelu;
  constexpr Then kLeft = kIsKept ? Then::kNothing : kThen;  // a gradient that was kept has passed the ReLU
  const T* const grad = static_cast<const T*>(kIsKept ? n.grad_residual : n.grad);
#pragma unroll 2
  for (std::int64_t at = walk.first; at < walk.end; at += walk.step) {
    const auto gs = load<N>(grad + at * N), xs = load<N>(static_cast<const T*>(n.x) + at * N);
    Pack<T, N> result;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float g = let_through<T, kLeft>(gs.values[i], xs.values[i], T(), norm, i);
      const float along = norm.normed(to_float(xs.values[i]), i) * of_weight[i];
      result.values[i] = from_float<T>(norm.weight[i] * norm.inverse_deviation[i] * (g - (of_bias[i] + along) * share));
    }
    store<N>(static_cast<T*>(n.grad_x) + at * N, result);
  }
}

// 32 columns a block: the sums over all blocks of partial[2][num_blocks][C], given to end(c, sums) by one thread each.
template <typename End>
__device__ inline void add_blocks(const CudaBatchNorm& n, End end) {
  __shared__ double shared[2][kGroups][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const int c = static_cast<int>(blockIdx.x) * 32 + lane;
  double totals[2] = {};
  if (c < n.C) {
    for (int block = group; block < n.num_blocks; block += kGroups) {
      totals[0] += n.partial[static_cast<std::int64_t>(block) * n.C + c];
      totals[1] += n.partial[(static_cast<std::int64_t>(n.num_blocks) + block) * n.C + c];
    }
  }
  shared[0][group][lane] = totals[0];
  shared[1][group][lane] = totals[1];
  __syncthreads();
  if (group != 0 || c >= n.C) return;
  for (int g = 1; g < kGroups; ++g) {
    totals[0] += shared[0][g][lane];
    totals[1] += shared[1][g][lane];
  }
  end(c, totals);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) finish_statistics(CudaBatchNorm n) {
  add_blocks(n, [&](int c, const double(&sums)[2]) {
    const double rows = static_cast<double>(n.num_rows), from_first = sums[0] / rows;
    const double mean = static_cast<double>(to_float(static_cast<const T*>(n.x)[c])) + from_first;
    const double variance = max(sums[1] / rows - from_first * from_first, 0.0);
    n.mean[c] = static_cast<float>(mean);
    n.inverse_deviation[c] = static_cast<float>(rsqrt(variance + static_cast<double>(n.epsilon)));
    if (n.running_mean == nullptr) return;
    const double unbiased = variance * rows / (rows - 1);
    n.running_mean[c] += n.momentum * (static_cast<float>(mean) - n.running_mean[c]);
    n.running_var[c] += n.momentum * (static_cast<float>(unbiased) - n.running_var[c]);
  });
}

__global__ void __launch_bounds__(kThreads) finish_gradients(CudaBatchNorm n) {
  add_blocks(n, [&](int c, const double(&sums)[2]) {
    n.grad_bias[c] = static_cast<float>(sums[0]);
    n.grad_weight[c] = static_cast<float>(sums[1]);
  });
}

// Calls f with a null pointer of the type and what follows as a type.
template <typename F>
void with_kind(const CudaBatchNorm& n, F f) {
  const auto with_then = [&](auto* type) {
    switch (n.then) {
      case Then::kNothing:
        return f(type, std::integral_constant<Then, Then::kNothing>());
      case Then::kRelu:
        return f(type, std::integral_constant<Then, Then::kRelu>());
      case Then::kAddRelu:
        return f(type, std::integral_constant<Then, Then::kAddRelu>());
    }
  };
  with_half_type(n.type, with_then);
}

unsigned column_blocks(const CudaBatchNorm& n) {
  return static_cast<unsigned>((n.C + 31) / 32);
}

}  // namespace

void batch_norm_forward_cuda(const CudaBatchNorm& n) {
  with_kind(n, [&](auto* type, auto then) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto blocks = static_cast<unsigned>(n.num_blocks);
    add_values<T><<<blocks, kThreads, 0, n.stream>>>(n);
    finish_statistics<T><<<column_blocks(n), kThreads, 0, n.stream>>>(n);
    normalise<T, decltype(then)::value><<<blocks, kThreads, 0, n.stream>>>(n);
  });
}

void batch_norm_backward_cuda(const CudaBatchNorm& n) {
  with_kind(n, [&](auto* type, auto then) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto blocks = static_cast<unsigned>(n.num_blocks);
    add_gradients<T, decltype(then)::value><<<blocks, kThreads, 0, n.stream>>>(n);
    finish_gradients<<<column_blocks(n), kThreads, 0, n.stream>>>(n);
    gradient_of_x<T, decltype(then)::value><<<blocks, kThreads, 0, n.stream>>>(n);
  });
}

}  // namespace tessera::kernels
