// What is done to flat buffers as a whole: sums of squares for the global norm, several tensors put into one, and
// float32 numbers kept as two halves.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::kernels {

// For the global norm, with the same bits however a buffer is sharded: squares are summed within blocks of this many
// numbers, counted from the buffer's start. Shards made of whole blocks have the same blocks as the whole buffer.
inline constexpr std::int64_t kNormBlock = 1024;

// values: [n] contiguous, float32, bfloat16 or float16. Returns [ceil(n / kNormBlock)] float64 on the same device: the
// sum of squares of each block, added in float64 in a fixed order. Not finite where a value is not finite.
at::Tensor block_square_sums(const at::Tensor& values);

// On a GPU: the sum over units of the sums of their blocks, in a fixed order that does not depend on how many parts a
// unit is in. sums: [parts, n] float64; columns [begins[u], begins[u + 1]) are unit u's, so part by part its blocks.
// Returns [1 + parts]: the total, and the last column as it is.
at::Tensor add_units_cuda(const at::Tensor& sums, const at::Tensor& begins);

// Copies or adds several tensors into one flat buffer at once: the gradients of a unit's biases and norms, which would
// otherwise cost one launch each.
struct FlatPart {
  at::Tensor values;  // of any shape; float32, bfloat16 or float16
  std::int64_t offset = 0;
  bool adds = false;  // to what is there; else replaces it
};

// flat: [n], float32, bfloat16 or float16, on the device of all parts, which do not overlap. Gives the same values as
// copy_() or add_() of each part.
void put_parts(const at::Tensor& flat, const std::vector<FlatPart>& parts);

// float32 numbers beside their bfloat16 copies for 2 bytes instead of 4: the copy, and what is to be added to its bits.
//
//   bits of the number = (bits of the copy << 16) + remainder,   -2^15 <= remainder < 2^15
//
// Exact, but for ties that are rounded down, whose remainder would be 2^15: such a number is stored as its neighbour
// towards 0, 2^-24 of its size away, which rounds to the same bfloat16. Of trained numbers one in 131,072 is such a
// tie, of numbers that come from a float16 file one in 16.
//
// Flat, of any device. Without a remainder `values` are the numbers themselves, of any type.
struct SplitFloats {
  at::Tensor values{};     // bfloat16, rounded to the nearest
  at::Tensor remainder{};  // int16

  at::ScalarType type() const { return remainder.defined() ? at::kFloat : values.scalar_type(); }
  std::int64_t numel() const { return values.numel(); }
  SplitFloats narrow(std::int64_t begin, std::int64_t num) const;
  SplitFloats clone() const;
  at::Tensor joined() const;  // `values`, if there is no remainder
};

// float32 [n] to int16 [n]; `copies` are bfloat16 of the same numbers. On their device, or on the one that is given.
at::Tensor remainder_of(const at::Tensor& numbers, const at::Tensor& copies,
                        std::optional<at::Device> device = std::nullopt);

}  // namespace tessera::kernels
