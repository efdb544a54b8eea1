// Sums over the columns of [num_rows, C], up to kMostColumnSums of them in one pass: a thread block adds kCudaRowBlock
// rows of 32 N columns to one partial sum each, and a second kernel adds the partial sums. Every order is fixed.
#pragma once

#include "kernels/cuda_common.cuh"

namespace tessera::kernels {

inline constexpr int kColumnGroups = 8;  // warps of a block: each has every eighth row
inline constexpr int kColumnThreads = 32 * kColumnGroups;

// Adds up the rows of one block: body(row, c, sums) adds row `row` of columns c to c + N - 1 to sums[K][N]. The result
// goes to partial[K][number of blocks][C].
template <int K, int N, typename Body>
__device__ inline void add_rows_of_block(std::int64_t num_rows, std::int64_t C, float* partial, Body body,
                                         std::int64_t rows_of_block = kCudaRowBlock) {
  __shared__ float shared[K][kColumnGroups][32 * N];
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * 32 * N, c = first_column + lane * N;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * rows_of_block;
  const std::int64_t end = min(num_rows, first + rows_of_block);
  float sums[K][N] = {};
  if (c < C) {
    for (std::int64_t row = first + group; row < end; row += kColumnGroups) body(row, c, sums);
  }
#pragma unroll
  for (int k = 0; k < K; ++k) {
#pragma unroll
    for (int n = 0; n < N; ++n) shared[k][group][lane * N + n] = sums[k][n];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < K * 32 * N; i += kColumnThreads) {
    const int k = i / (32 * N), column = i % (32 * N);
    if (first_column + column >= C) continue;
    float total = 0;
    for (int g = 0; g < kColumnGroups; ++g) total += shared[k][g][column];
    partial[(static_cast<std::int64_t>(k) * gridDim.y + blockIdx.y) * C + first_column + column] = total;
  }
}

inline dim3 column_grid(const CudaRows& rows, int N) {
  return {static_cast<unsigned>((rows.C + 32 * N - 1) / (32 * N)),
          static_cast<unsigned>(num_row_blocks(rows.num_rows))};
}

struct ColumnResults {
  void* sums[kMostColumnSums];
};

// 32 columns of one sum (blockIdx.y) a block.
template <typename T>
__global__ void add_row_blocks(const float* partial, std::int64_t num_blocks, std::int64_t C, ColumnResults results) {
  __shared__ float shared[kColumnGroups][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * 32 + lane;
  const float* mine = partial + static_cast<std::int64_t>(blockIdx.y) * num_blocks * C;
  float total = 0;
  if (c < C) {
    for (std::int64_t b = group; b < num_blocks; b += kColumnGroups) total += mine[b * C + c];
  }
  shared[group][lane] = total;
  __syncthreads();
  if (group != 0 || c >= C) return;
  for (int g = 1; g < kColumnGroups; ++g) total += shared[g][lane];
  static_cast<T*>(results.sums[blockIdx.y])[c] = from_float<T>(total);
}

template <typename T>
void launch_add_row_blocks(const float* partial, std::int64_t num_blocks, std::int64_t C, const ColumnResults& results,
                           int num_sums, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((C + 31) / 32), static_cast<unsigned>(num_sums));
  add_row_blocks<T><<<grid, kColumnThreads, 0, stream>>>(partial, num_blocks, C, results);
}

template <typename T>
void launch_add_row_blocks(const CudaRows& rows, const float* partial, const ColumnResults& results, int num_sums) {
  launch_add_row_blocks<T>(partial, num_row_blocks(rows.num_rows), rows.C, results, num_sums, rows.stream);
}

}  // namespace tessera::kernels
