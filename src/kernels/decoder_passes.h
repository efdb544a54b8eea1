// The passes of today's decoders' kernels without autograd: what their own nodes (rms_norm.h, rotary.h, gated_linear.h)
// and that of a whole block (gated_block.h) are made of. Arguments have been checked; results are contiguous.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/rotary.h"
#include "kernels/sizes.h"

namespace tessera::kernels {

struct RmsNormed {
  at::Tensor sum;  // x + residual; undefined without a residual
  at::Tensor out;
  at::Tensor inverse_rms;  // [rows] float32
};

// x: rows of at most two strides, contiguous if there is a residual, which may be undefined.
RmsNormed rms_forward(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps,
                      RmsWeight how);

// The gradient of x, which is what was normalised; that of the weight is written to grad_weight, if defined. grad and
// grad_sum are contiguous; grad_sum, of the sum, is added to the gradient of x and may be undefined.
at::Tensor rms_backward(const at::Tensor& grad, const at::Tensor& grad_sum, const at::Tensor& x,
                        const at::Tensor& weight, const at::Tensor& inverse_rms, RmsWeight how,
                        const at::Tensor& grad_weight);

// heads: [T, H, D]. Throws Error.
void check_rotary_table(const RotaryTable& table, const at::Tensor& heads);
// back: by the opposite angles, which is the gradient.
at::Tensor rotated(const at::Tensor& x, const RotaryTable& table, bool back);

// activation(gate) * up. gate, up: [T, F], dense rows.
at::Tensor gated_product(const at::Tensor& gate, const at::Tensor& up, GateActivation activation);

// From the gradient of the product, in whose place that of `gate` is written. product: forward's again, if wanted.
struct GatedGradients {
  at::Tensor gate, up, product;
};
GatedGradients gated_product_backward(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up,
                                      GateActivation activation, bool wants_product);

}  // namespace tessera::kernels
