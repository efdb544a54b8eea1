// Sizes of the sums over columns, shared by the GPU's kernels and the memory plan.
#pragma once

#include <cstdint>

namespace tessera::kernels {

// Rows that one block adds up before partial sums are joined: K sums over columns need K * num_row_blocks * C floats.
inline constexpr std::int64_t kCudaRowBlock = 64;
inline constexpr int kMostColumnSums = 4;
inline constexpr std::int64_t num_row_blocks(std::int64_t num_rows) {
  return (num_rows + kCudaRowBlock - 1) / kCudaRowBlock;
}

}  // namespace tessera::kernels
