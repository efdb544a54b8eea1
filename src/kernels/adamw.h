// One step of AdamW (or Adam) on flat buffers, in one pass over memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace tessera::kernels {

struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;      // false: Adam, the decay added to the gradient
  double gradient_scale = 1;  // every gradient is multiplied by it first: clipping, unscaling
};

struct AdamWBuffers {
  at::Tensor params;               // float32: the master copy
  at::Tensor grads;                // float32, bfloat16 or float16
  at::Tensor mean, square_mean;    // float32: torch's exp_avg and exp_avg_sq
  std::optional<at::Tensor> copy;  // bfloat16 or float16: receives the new params, rounded
};

// All buffers are [n], contiguous, on one device. `step` counts from 1. Each element is updated independently: a shard
// gets the same bits as in the whole buffer, for any number of threads. Equal to torch.optim within rounding.
void adamw_step(const AdamWBuffers& buffers, const AdamW& how, std::int64_t step);

}  // namespace tessera::kernels
