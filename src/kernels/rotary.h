// Rotary position embedding, by halves, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

namespace tessera::kernels {

// Of each token: [T, R / 2] float32, contiguous, on the device of what is rotated. Attention factors (yarn) are in
// them.
struct RotaryTable {
  at::Tensor cos, sin;
};

// Rotates the first R of the D numbers of each head: the pairs (i, i + R / 2), for i < R / 2. x: [T, H, D], any view
// with a dense last dimension; the result is contiguous. Computes in float32 and rounds once. Keeps the table alone:
// backward rotates back.
at::Tensor rotary(const at::Tensor& x, const RotaryTable& table);

}  // namespace tessera::kernels
