// The max pooling of a ResNet's stem: windows of 3 x 3, stride 2, padding 1. On a GPU in half types, channels-last, a
// kernel of our own keeps one byte for a result, where libtorch keeps its input and eight bytes.
#pragma once

#include <ATen/core/Tensor.h>

namespace tessera::kernels {

// Whether that kernel is used.
bool max_pool_serves(const at::Tensor& x_BCHW);

// What at::max_pool2d gives; of equal values the first in the window gets the gradient.
at::Tensor max_pool(const at::Tensor& x_BCHW);

}  // namespace tessera::kernels
