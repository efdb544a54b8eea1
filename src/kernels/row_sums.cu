#include "kernels/column_sums.cuh"
#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 256;

// The thread block at the first place of an id handles all of its rows.
template <typename T>
__global__ void add(std::int64_t num_rows, std::int64_t C, const std::int64_t* ids, const std::int64_t* order,
                    const T* rows, T* table) {
  const std::int64_t first = blockIdx.x, id = ids[first];
  if (first > 0 && ids[first - 1] == id) return;
  std::int64_t end = first + 1;
  while (end < num_rows && ids[end] == id) ++end;
  for (std::int64_t c = threadIdx.x; c < C; c += kThreads) {
    float sum = 0;
#pragma unroll 4
    for (std::int64_t i = first; i < end; ++i) sum += to_float(rows[order[i] * C + c]);
    T& to = table[id * C + c];
    to = from_float<T>(to_float(to) + to_float(from_float<T>(sum)));
  }
}

template <typename T, int N>
__global__ void add_up(const T* x, float* partial, std::int64_t num_rows, std::int64_t C) {
  add_rows_of_block<1, N>(num_rows, C, partial, [&](std::int64_t row, std::int64_t c, float(&sums)[1][N]) {
    const auto xs = load<N>(x + row * C + c);
#pragma unroll
    for (int n = 0; n < N; ++n) sums[0][n] += to_float(xs.values[n]);
  });
}

}  // namespace

void add_rows_cuda(const CudaRows& rows, const std::int64_t* ids, const std::int64_t* order, const void* values,
                   void* table) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    add<T><<<static_cast<unsigned>(rows.num_rows), kThreads, 0, rows.stream>>>(
        rows.num_rows, rows.C, ids, order, static_cast<const T*>(values), static_cast<T*>(table));
  });
}

void column_sums_cuda(const CudaRows& rows, const void* x, void* sums, float* partial) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if (rows.aligned && rows.C % 4 == 0) {
      add_up<T, 4><<<column_grid(rows, 4), kColumnThreads, 0, rows.stream>>>(static_cast<const T*>(x), partial,
                                                                             rows.num_rows, rows.C);
    } else {
      add_up<T, 1><<<column_grid(rows, 1), kColumnThreads, 0, rows.stream>>>(static_cast<const T*>(x), partial,
                                                                             rows.num_rows, rows.C);
    }
    launch_add_row_blocks<T>(rows, partial, {{sums}}, 1);
  });
}

}  // namespace tessera::kernels
