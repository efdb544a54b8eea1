// Softmax cross-entropy over rows of logits, with the gradient written in place of the logits.
#pragma once

#include <ATen/core/Tensor.h>

namespace tessera::kernels {

// logits: [R, V] contiguous; targets: [R] int64, each a class. Adds the rows' losses to `sum` (float32 scalar). With
// `to_gradient` the logits become gradient_scale * their gradient. Statistics are float32 for every type.
void cross_entropy_rows(const at::Tensor& logits, const at::Tensor& targets, double label_smoothing,
                        double gradient_scale, bool to_gradient, const at::Tensor& sum);

}  // namespace tessera::kernels
