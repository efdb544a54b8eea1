// The head of a language model with its loss, chunk by chunk: the full [T, V] matrix never exists.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace tessera::kernels {

struct LinearCrossEntropy {
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;   // as torch's cross_entropy
  std::int64_t chunk_rows = 0;  // rows of logits that exist at a time; 0: chosen from V for chunks of 64 MB (GPU: 256)
  // Roughly what backward will multiply by (a loss scale, one over the count). Gradients are computed at this scale, so
  // that in fp16 they neither vanish nor overflow where a plain backward pass's would not.
  double gradient_scale = 1;
  bool scale_is_exact = false;  // backward will multiply by just that: nothing is left to multiply
  // The rows whose target counts, in order, where the caller knows them; each target must be a class. Undefined: found
  // here, for which the host waits on a GPU.
  at::Tensor counted{};
  at::Tensor parameter{};  // whose gradient the weight's becomes, where the weight is a view of it
};

struct LossSum {
  at::Tensor sum;                // float32 scalar with gradient: over the counted targets, not divided
  std::int64_t num_counted = 0;  // targets that are not ignored
};

// hidden: [T, C] in the compute type, weight: [V, C], bias: [V] or none, targets: [T] int64. Logits are computed only
// for rows whose target counts. The gradients of hidden, weight and bias are computed in the same pass where needed.
LossSum linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                             const at::Tensor& targets, const LinearCrossEntropy& how = {});

// For the memory plan: the rows of logits that exist at a time where chunk_rows is 0, and, for half types on a CPU, the
// classes whose part of the weight is multiplied at a time.
std::int64_t head_chunk_rows(std::int64_t vocab_size, std::int64_t hidden_size, std::int64_t element_bytes, bool on_gpu,
                             std::int64_t num_counted);
std::int64_t head_part_classes(std::int64_t rows, std::int64_t vocab_size, std::int64_t hidden_size);

// Softmax cross-entropy over rows of logits, with the gradient written in place of the logits.
// logits: [R, V] contiguous; targets: [R] int64, each a class. Adds the rows' losses to `sum` (float32 scalar). With
// `to_gradient` the logits become gradient_scale * their gradient. Statistics are float32 for every type.
void cross_entropy_rows(const at::Tensor& logits, const at::Tensor& targets, double label_smoothing,
                        double gradient_scale, bool to_gradient, const at::Tensor& sum);

}  // namespace tessera::kernels
