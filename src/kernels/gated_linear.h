// The gated activation of today's decoders and the linear layer behind it, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/sizes.h"

namespace tessera::kernels {

// linear(activation(gate) * up, weight, bias), with GateActivation of sizes.h. gate, up: [T, F], rows maybe strided
// (halves of one projection); weight: [C, F]; bias: [C] or undefined. The product is computed in float32 and rounded
// once. It is not kept: backward computes it again from gate and up, one extra pass beside two matrix products.
at::Tensor gated_linear(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weight, const at::Tensor& bias,
                        GateActivation activation);

}  // namespace tessera::kernels
