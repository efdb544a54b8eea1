// Sums over the rows of a matrix: the gradient of a bias.
#pragma once

#include <ATen/core/Tensor.h>

namespace tessera::kernels {

// x: [R, C] contiguous; the result, [C] in x's type, is added up in float32.
at::Tensor column_sums(const at::Tensor& x);

}  // namespace tessera::kernels
