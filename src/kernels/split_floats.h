// float32 numbers beside their bfloat16 copies for 2 bytes instead of 4: the copy, and what is to be added to its bits.
//
//   bits of the number = (bits of the copy << 16) + remainder,   -2^15 <= remainder < 2^15
//
// Exact, but for ties that are rounded down, whose remainder would be 2^15: such a number is stored as its neighbour
// towards 0, 2^-24 of its size away, which rounds to the same bfloat16. Of trained numbers one in 131,072 is such a
// tie, of numbers that come from a float16 file one in 16.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace tessera::kernels {

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
