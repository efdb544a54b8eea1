#include "kernels/column_sums.cuh"

namespace tessera::kernels {
namespace {

template <typename T, int N>
__global__ void add_up(const T* x, float* partial, std::int64_t num_rows, std::int64_t C) {
  add_rows_of_block<1, N>(num_rows, C, partial, [&](std::int64_t row, std::int64_t c, float(&sums)[1][N]) {
    const auto xs = load<N>(x + row * C + c);
#pragma unroll
    for (int n = 0; n < N; ++n) sums[0][n] += to_float(xs.values[n]);
  });
}

}  // namespace

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
