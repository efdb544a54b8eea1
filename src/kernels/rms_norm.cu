#include "kernels/column_sums.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr std::int64_t kWarpRow = 512;  // rows up to this long, those of heads, get a warp each instead of a block

// A thread's share of a row: numbers first, first + step, ..., N at a time.
template <int N, bool kWarpIsRow>
struct Share {
  std::int64_t row;
  int first, step;

  __device__ Share() {
    const int thread = static_cast<int>(threadIdx.x);
    row = kWarpIsRow ? static_cast<std::int64_t>(blockIdx.x) * kWarps + thread / 32 : blockIdx.x;
    first = (kWarpIsRow ? thread % 32 : thread) * N;
    step = (kWarpIsRow ? 32 : kThreads) * N;
  }
};

template <bool kWarpIsRow>
__device__ inline float row_sum(float value, float* shared) {
  if constexpr (kWarpIsRow) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
  } else {
    return block_sum(value, shared);
  }
}

__device__ inline std::int64_t place_of(const RowPlaces& rows, std::int64_t row) {
  if (rows.inner == 1) return row * rows.outer_stride;
  // There is no room for 2^32 rows; a division of 64 bits takes dozens of instructions.
  const std::int64_t outer = static_cast<unsigned>(row) / static_cast<unsigned>(rows.inner);
  return outer * rows.outer_stride + (row - outer * rows.inner) * rows.inner_stride;
}

__device__ inline float factor_of(float weight, RmsWeight how) {
  return how == RmsWeight::kOnePlus ? 1.0f + weight : weight;
}

// The second pass finds the row in the first-level cache.
template <typename T, int N, bool kWarpIsRow>
__global__ void forward(CudaRmsNorm norm) {
  __shared__ float shared[32];
  const Share<N, kWarpIsRow> share;
  if (share.row >= norm.num_rows) return;  // a whole warp
  const std::int64_t C = norm.C, begin = share.row * C;
  const T* x = static_cast<const T*>(norm.x) + place_of(norm.x_rows, share.row);
  const T* values = norm.residual == nullptr ? x : static_cast<const T*>(norm.sum) + begin;
  float squares = 0;
  for (std::int64_t c = share.first; c < C; c += share.step) {
    auto xs = load<N>(x + c);
    if (norm.residual != nullptr) {
      const auto rs = load<N>(static_cast<const T*>(norm.residual) + begin + c);
#pragma unroll
      for (int n = 0; n < N; ++n) xs.values[n] = from_float<T>(to_float(xs.values[n]) + to_float(rs.values[n]));
      store<N>(static_cast<T*>(norm.sum) + begin + c, xs);  // read again by the same thread
    }
#pragma unroll
    for (int n = 0; n < N; ++n) squares += to_float(xs.values[n]) * to_float(xs.values[n]);
  }
  const float r = rsqrtf(row_sum<kWarpIsRow>(squares, shared) / static_cast<float>(C) + norm.eps);
  for (std::int64_t c = share.first; c < C; c += share.step) {
    const auto xs = load<N>(values + c);
    const auto ws = load<N>(static_cast<const T*>(norm.weight) + c);
    Pack<T, N> result;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float normed = to_float(xs.values[n]) * r, factor = factor_of(to_float(ws.values[n]), norm.how);
      const bool rounds_first = norm.how == RmsWeight::kAfterRounding;
      result.values[n] = from_float<T>((rounds_first ? to_float(from_float<T>(normed)) : normed) * factor);
    }
    store<N>(static_cast<T*>(norm.out) + begin + c, result);
  }
  if (share.first == 0) norm.inverse_rms[share.row] = r;
}

template <typename T, int N, bool kWarpIsRow>
__global__ void backward_x(CudaRmsNorm norm) {
  __shared__ float shared[32];
  const Share<N, kWarpIsRow> share;
  if (share.row >= norm.num_rows) return;  // a whole warp
  const std::int64_t C = norm.C, begin = share.row * C;
  const T* x = static_cast<const T*>(norm.x) + place_of(norm.x_rows, share.row);
  const T* grad = static_cast<const T*>(norm.grad) + begin;
  const T* weight = static_cast<const T*>(norm.weight);
  const float r = norm.inverse_rms[share.row];
  float along = 0;
  for (std::int64_t c = share.first; c < C; c += share.step) {
    const auto gs = load<N>(grad + c);
    const auto xs = load<N>(x + c);
    const auto ws = load<N>(weight + c);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      along += to_float(gs.values[n]) * factor_of(to_float(ws.values[n]), norm.how) * to_float(xs.values[n]);
    }
  }
  const float along_row = row_sum<kWarpIsRow>(along, shared) / static_cast<float>(C) * r * r * r;
  for (std::int64_t c = share.first; c < C; c += share.step) {
    const auto gs = load<N>(grad + c);
    const auto xs = load<N>(x + c);
    const auto ws = load<N>(weight + c);
    Pack<T, N> extra, result;
    if (norm.grad_sum != nullptr) extra = load<N>(static_cast<const T*>(norm.grad_sum) + begin + c);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float scaled = to_float(gs.values[n]) * factor_of(to_float(ws.values[n]), norm.how);
      const float d = r * scaled - along_row * to_float(xs.values[n]);
      result.values[n] = from_float<T>(norm.grad_sum == nullptr ? d : d + to_float(extra.values[n]));
    }
    store<N>(static_cast<T*>(norm.grad_x) + begin + c, result);
  }
}

template <typename T, int N>
__global__ void backward_weight(CudaRmsNorm norm, std::int64_t rows_of_block) {
  const T *grad = static_cast<const T*>(norm.grad), *x = static_cast<const T*>(norm.x);
  const auto add = [&](std::int64_t row, std::int64_t c, float(&sums)[1][N]) {
    const auto gs = load<N>(grad + row * norm.C + c);
    const auto xs = load<N>(x + place_of(norm.x_rows, row) + c);
    const float r = norm.inverse_rms[row];
#pragma unroll
    for (int n = 0; n < N; ++n) sums[0][n] += to_float(gs.values[n]) * (to_float(xs.values[n]) * r);
  };
  add_rows_of_block<1, N>(norm.num_rows, norm.C, norm.partial, add, rows_of_block);
}

unsigned row_grid(const CudaRmsNorm& norm, bool warp_is_row) {
  return static_cast<unsigned>(warp_is_row ? (norm.num_rows + kWarps - 1) / kWarps : norm.num_rows);
}

template <typename T, int N>
void run_forward(const CudaRmsNorm& norm) {
  const bool warp_is_row = norm.C <= kWarpRow;
  const auto kernel = warp_is_row ? forward<T, N, true> : forward<T, N, false>;
  kernel<<<row_grid(norm, warp_is_row), kThreads, 0, norm.stream>>>(norm);
}

template <typename T, int N>
void run_backward(const CudaRmsNorm& norm) {
  const bool warp_is_row = norm.C <= kWarpRow;
  const auto kernel = warp_is_row ? backward_x<T, N, true> : backward_x<T, N, false>;
  kernel<<<row_grid(norm, warp_is_row), kThreads, 0, norm.stream>>>(norm);
  if (norm.grad_weight == nullptr) return;
  constexpr int kColumns = N < 4 ? N : 4;  // so that heads of 128 fill a warp
  const std::int64_t num_blocks = num_rms_blocks(norm.num_rows);
  const dim3 grid(static_cast<unsigned>((norm.C + 32 * kColumns - 1) / (32 * kColumns)),
                  static_cast<unsigned>(num_blocks));
  backward_weight<T, kColumns><<<grid, kColumnThreads, 0, norm.stream>>>(norm, rms_rows_of_block(norm.num_rows));
  launch_add_row_blocks<T>(norm.partial, num_blocks, norm.C, {{norm.grad_weight}}, 1, norm.stream);
}

}  // namespace

void rms_norm_forward_cuda(const CudaRmsNorm& norm) {
  with_type(norm.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int kWord = 16 / sizeof(T);
    const auto run = norm.aligned ? run_forward<T, kWord> : run_forward<T, 1>;
    run(norm);
  });
}

void rms_norm_backward_cuda(const CudaRmsNorm& norm) {
  with_type(norm.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int kWord = 16 / sizeof(T);
    const auto run = norm.aligned ? run_backward<T, kWord> : run_backward<T, 1>;
    run(norm);
  });
}

}  // namespace tessera::kernels
