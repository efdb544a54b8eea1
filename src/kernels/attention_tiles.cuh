// What the passes of attention.cu know of a pair of tiles, queries and keys of one head of one row: where they lie,
// which of their scores a thread holds, what is added to these, and which are hidden.
#pragma once

#include "kernels/cuda_launch.h"
#include "kernels/tiles.cuh"

namespace tessera::kernels {

inline constexpr float kLog2E = 1.44269504f;
inline constexpr int kScoreTiles = kTileRows / 8;

// 2^x to within two units in the last place; results below the smallest normal number are 0.
__device__ inline float power_of_two(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Where a block works.
struct Place {
  int begin, length;  // of the row: its first token, its tokens

  __device__ Place(const CudaAttention& a, unsigned row)
      : begin(a.cu_seqlens[row]), length(a.cu_seqlens[row + 1] - begin) {}
};

// Within a tile, the row that a lane's first two numbers (c < 2) or last two belong to, and their columns.
__device__ inline int row_of(int c) {
  return static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4 + c / 2 * 8;
}
__device__ inline int lane_column() {
  return static_cast<int>(threadIdx.x) % 4 * 2;
}
__device__ inline int column_of(int n, int c) {
  return n * 8 + lane_column() + c % 2;
}

// Scores are kept as powers of two: log2(e) (q k / sqrt(D) + slope (key - query)). Of one pair of tiles: a lane's
// numbers are in two rows and in columns that differ by constants, so that the bias is one addition and one product.
struct Scores {
  float scale, slope;
  float bias[2];  // of the lane's first column, by row

  __device__ Scores(const CudaAttention& a, int head)
      : scale(a.scale * kLog2E), slope(a.slopes == nullptr ? 0.0f : a.slopes[head] * kLog2E), bias{} {}

  // The lane's first column is `key` for its rows' queries, or with kOfKeys the other way round.
  template <bool kOfKeys>
  __device__ void begin(int first_row, int first_column) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int distance = first_column + lane_column() - first_row - row_of(2 * half);
      bias[half] = slope * static_cast<float>(kOfKeys ? -distance : distance);
    }
  }
  template <bool kOfKeys>
  __device__ float of(float product, int n, int c) const {
    const float column = static_cast<float>(n * 8 + c % 2);
    return fmaf(product, scale, fmaf(kOfKeys ? -slope : slope, column, bias[c / 2]));
  }
};

// The row's queries (0), keys (1) or values (2), of one of their heads.
template <typename T, int D>
__device__ inline RowSource<T, D> part_of(const CudaAttention& a, int part, const Place& place, int head) {
  return {static_cast<const T*>(a.parts[part]) + place.begin * a.token_stride[part] + head * a.head_stride[part],
          a.token_stride[part], place.length};
}
template <int D>
__device__ inline std::int64_t result_offset(const CudaAttention& a, const Place& place, int head, int first) {
  return ((place.begin + static_cast<std::int64_t>(first)) * a.num_heads + head) * D;
}

// Whether a query sees a key. Negative distances are large unsigned numbers.
__device__ inline bool is_hidden(int query_minus_key, int window) {
  return static_cast<unsigned>(query_minus_key) >= static_cast<unsigned>(window);
}
// The first tile with keys that queries of the tile at `first` see; the last tile with queries that see keys of it.
__device__ inline int first_tile_of_keys(int first, int window) {
  return max(0, first - window + 1) / kTileRows;
}
__device__ inline int last_tile_of_queries(int first, int window, int length) {
  return min(length - 1, first + kTileRows - 1 + window - 1) / kTileRows;
}
// Of a tile of queries and one of keys: whether a pair of theirs is hidden.
__device__ inline bool tiles_hide(int queries, int keys, int window) {
  return queries == keys || (queries - keys + 1) * kTileRows - 1 >= window;
}

// Over the four lanes that share a row.
__device__ inline float largest_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float sum_of_row(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

}  // namespace tessera::kernels
