// Sums of squares for the global norm: the same bits however a buffer is sharded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tessera::kernels {

// Squares are summed within blocks of this many numbers, counted from the buffer's start. Shards made of whole blocks
// have the same blocks as the whole buffer.
inline constexpr std::int64_t kNormBlock = 1024;

// values: [n] contiguous, float32, bfloat16 or float16. Returns [ceil(n / kNormBlock)] float64 on the same device: the
// sum of squares of each block, added in float64 in a fixed order. Not finite where a value is not finite.
at::Tensor block_square_sums(const at::Tensor& values);

// On a GPU: the sum over units of the sums of their blocks, in a fixed order that does not depend on how many parts a
// unit is in. sums: [parts, n] float64; columns [begins[u], begins[u + 1]) are unit u's, so part by part its blocks.
// Returns [1 + parts]: the total, and the last column as it is.
at::Tensor add_units_cuda(const at::Tensor& sums, const at::Tensor& begins);

// The sum of `sums` (float64, any device), added one by one in order.
double add_in_order(const at::Tensor& sums);

}  // namespace tessera::kernels
