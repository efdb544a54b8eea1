// Tiles of 64 rows of D numbers in shared memory: copying rows there, and products of tiles, 64 rows a block of four
// warps.
//
// A tile lies in shared memory in one or two panels: 64 columns, and those after them. A row of a panel is contiguous,
// as it comes from global memory; its words of 16 bytes change places from row to row, so that the same words of 8 rows
// lie in different banks: the swizzling that wgmma knows.
#pragma once

#include "kernels/tensor_cores.cuh"

namespace tessera::kernels {

inline constexpr int kTileRows = 64;
inline constexpr int kTileThreads = 128;  // four warps of 16 rows

inline constexpr int kPanelColumns = 64;
template <int D>
inline constexpr int kTileNumbers{kTileRows * D};
inline constexpr int kTileAlignment = 1024;  // of a tile, in bytes: the swizzling repeats after so many at most

// Words of 16 bytes in a row of the panel.
template <int D>
__host__ __device__ constexpr int panel_words(int panel) {
  return (panel == 0 ? kPanelColumns : D - kPanelColumns) / 8;
}
// In numbers. `more_rows`: a multiple of 8, after which the words have the same places.
template <int D>
__device__ inline int tile_offset(int row, int panel, int word, int more_rows = 0) {
  const int words = panel_words<D>(panel);
  const int place = word ^ static_cast<int>(static_cast<unsigned>(row * words) / 8 % static_cast<unsigned>(words));
  return panel * kTileRows * kPanelColumns + (row * words + place) * 8 + more_rows * words * 8;
}

// A tile as the left factor: a warp has its 16 rows, read from shared memory each time, or once with kKeeps.
template <typename T, int D, bool kKeeps>
class LeftRows {
 public:
  __device__ explicit LeftRows(const T* tile) : tile_(tile) {}

  // When the tile has arrived.
  __device__ void keep() {
    if constexpr (kKeeps) {
#pragma unroll
      for (int k = 0; k < D; k += 16) kept_[k / 16] = load(k);
    }
  }
  __device__ const T* tile() const {
    return tile_;
  }
  // Columns k to k + 15.
  __device__ LeftFactor part(int k) const {
    if constexpr (kKeeps) return kept_[k / 16];
    return load(k);
  }

 private:
  __device__ LeftFactor load(int k) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    LeftFactor left;
    const int word = k % kPanelColumns / 8 + lane / 16;
    load_blocks(tile_ + tile_offset<D>(lane % 16, k / kPanelColumns, word, static_cast<int>(threadIdx.x) / 32 * 16),
                left.words);
    return left;
  }

  const T* tile_;
  LeftFactor kept_[kKeeps ? D / 16 : 1];
};

// A product may run on after its call: end_products comes before its sums are read or changed, but by another product.
// All threads of a block call these together.
#if TESSERA_WGMMA

// Waits until at most `newest` products are under way; c is the sum of the newest one that is not.
template <int newest, int N>
__device__ inline void end_products(Accumulator (&c)[N]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(newest) : "memory");
#pragma unroll
  for (int n = 0; n < N; ++n) asm volatile("" : TESSERA_SUMS_4(c[n])::"memory");  // no use of it moves up
}

// c[64, 64] = a[64, D] b[64, D]^T
template <typename T, int D, bool kKeeps>
__device__ inline void begin_rows_by_rows(Accumulator (&c)[kTileRows / 8], const LeftRows<T, D, kKeeps>& a,
                                          const T* b) {
  const auto multiply = [&](int k, auto panel, auto adds) {
    constexpr int kPanel = decltype(panel)::value;
    constexpr bool kAdds = decltype(adds)::value;
    const int first = kPanel * kTileRows * kPanelColumns + k % kPanelColumns;
    const std::uint64_t right = factor_at<panel_words<D>(kPanel)>(b + first);
    if constexpr (kKeeps) {
      begin_multiply<T, kTileRows, kAdds, false>(c, a.part(k), right);
    } else {
      begin_multiply_of_tiles<T, kAdds>(c, factor_at<panel_words<D>(kPanel)>(a.tile() + first), right);
    }
  };
  using First = std::integral_constant<int, 0>;
  using Second = std::integral_constant<int, 1>;
  begin_products();
  multiply(0, First(), std::false_type());
#pragma unroll
  for (int k = 16; k < kPanelColumns; k += 16) multiply(k, First(), std::true_type());
  if constexpr (D > kPanelColumns) {
#pragma unroll
    for (int k = kPanelColumns; k < D; k += 16) multiply(k, Second(), std::true_type());
  }
  commit_products();
}

// c[64, D] += p[64, 64] b[64, D], p rounded to T.
template <typename T, int D>
__device__ inline void begin_product(Accumulator (&c)[D / 8], const Accumulator (&p)[kTileRows / 8], const T* b) {
  LeftFactor left[kTileRows / 16];
#pragma unroll
  for (int k = 0; k < kTileRows; k += 16) left[k / 16] = rounded<T>(p[k / 8], p[k / 8 + 1]);
  begin_products();
#pragma unroll
  for (int k = 0; k < kTileRows; k += 16) {
    begin_multiply<T, kPanelColumns, true, true>(c, left[k / 16], factor_at<8>(b + k * kPanelColumns));
    if constexpr (D > kPanelColumns) {
      constexpr int kColumns = D - kPanelColumns;
      const T* const second = b + kTileRows * kPanelColumns + k * kColumns;
      begin_multiply<T, kColumns, true, true>(c + kPanelColumns / 8, left[k / 16], factor_at<kColumns / 8>(second));
    }
  }
  commit_products();
}

#else

template <int newest, int N>
__device__ inline void end_products(Accumulator (&)[N]) {}

template <typename T, int D, bool kKeeps>
__device__ inline void begin_rows_by_rows(Accumulator (&c)[kTileRows / 8], const LeftRows<T, D, kKeeps>& a,
                                          const T* b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (auto& part : c) part = Accumulator{};
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    const LeftFactor left = a.part(k);
#pragma unroll
    for (int n = 0; n < kTileRows; n += 16) {
      std::uint32_t right[4];
      const int row = lane % 8 + lane / 16 * 8, word = k % kPanelColumns / 8 + lane / 8 % 2;
      load_blocks(b + tile_offset<D>(row, k / kPanelColumns, word, n), right);
      multiply_add<T>(c[n / 8], left, right[0], right[1]);
      multiply_add<T>(c[n / 8 + 1], left, right[2], right[3]);
    }
  }
}

template <typename T, int D>
__device__ inline void begin_product(Accumulator (&c)[D / 8], const Accumulator (&p)[kTileRows / 8], const T* b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < kTileRows; k += 16) {
    const LeftFactor left = rounded<T>(p[k / 8], p[k / 8 + 1]);
#pragma unroll
    for (int n = 0; n < D; n += 16) {
      std::uint32_t right[4];
      load_blocks_transposed(b + tile_offset<D>(lane % 16, n / kPanelColumns, n % kPanelColumns / 8 + lane / 16, k),
                             right);
      multiply_add<T>(c[n / 8], left, right[0], right[1]);
      multiply_add<T>(c[n / 8 + 1], left, right[2], right[3]);
    }
  }
}

#endif

// Rows of D numbers in global memory, to be copied into tiles. As many threads as a panel's row has words copy it
// together.
template <typename T, int D>
class RowSource {
 public:
  __device__ RowSource(const T* first, std::int64_t stride, int num_rows)
      : first_(first), stride_(static_cast<int>(stride)), num_rows_(num_rows) {}

  // Starts copying the rows from `first` on; those after the last one become zeros.
  __device__ void start(T* tile, int first) const {
    start_panel<0>(tile, first);
    if constexpr (D > kPanelColumns) start_panel<1>(tile, first);
  }

 private:
  template <int kPanel>
  __device__ void start_panel(T* tile, int first) const {
    constexpr int kWords = panel_words<D>(kPanel), kRows = kTileThreads / kWords;  // at once
    const int own_row = static_cast<int>(threadIdx.x) / kWords, word = static_cast<int>(threadIdx.x) % kWords;
    const std::uint32_t to = shared_address(tile + tile_offset<D>(own_row, kPanel, word));
    const T* const own = first_ + kPanel * kPanelColumns + word * 8;
#pragma unroll
    for (int row = 0; row < kTileRows; row += kRows) {  // a multiple of 8 rows further: the word's place is the same
      const int from = first + own_row + row;
      TESSERA_AMPERE("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + row * kWords * 16),
                     "l"(own + static_cast<std::int64_t>(from) * stride_), "r"(from < num_rows_ ? 16 : 0));
    }
  }

  const T* first_;
  int stride_, num_rows_;
};

// Waits for the copies that this thread has started and for the other threads to arrive: the tiles are there, and those
// that were in use before may be filled again.
__device__ inline void wait_for_tiles() {
  TESSERA_AMPERE("cp.async.commit_group;");
  TESSERA_AMPERE("cp.async.wait_group 0;");
#if TESSERA_WGMMA
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads past the threads' view of memory
#endif
  __syncthreads();
}

// A warp's 16 rows of D numbers, times `factor`, to global memory; rows from `num_rows` on are left out.
template <typename T, int D>
__device__ inline void store_rows(const Accumulator (&c)[D / 8], float factor_low, float factor_high, T* to,
                                  std::int64_t row_stride, int num_rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4;
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
    const int column = n * 8 + lane % 4 * 2;
    const float* x = c[n].values;
    if (row < num_rows) {
      *reinterpret_cast<std::uint32_t*>(to + row * row_stride + column) =
          pack_two<T>(x[0] * factor_low, x[1] * factor_low);
    }
    if (row + 8 < num_rows) {
      *reinterpret_cast<std::uint32_t*>(to + (row + 8) * row_stride + column) =
          pack_two<T>(x[2] * factor_high, x[3] * factor_high);
    }
  }
}

}  // namespace tessera::kernels
