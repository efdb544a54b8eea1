// One step of SGD on flat buffers, as torch.optim.SGD does it, in one pass over memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace tessera::kernels {

struct Sgd {
  double learning_rate = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  double gradient_scale = 1;  // every gradient is multiplied by it first: clipping, unscaling
};

struct SgdBuffers {
  at::Tensor params;                   // float32: the master copy
  at::Tensor grads;                    // float32, bfloat16 or float16
  std::optional<at::Tensor> momentum;  // float32; needed where there is momentum
  std::optional<at::Tensor> copy;      // bfloat16 or float16: receives the new params, rounded
};

// As adamw_step. At step 1 the momentum becomes the undampened gradient; its old content is not read.
void sgd_step(const SgdBuffers& buffers, const Sgd& how, std::int64_t step);

}  // namespace tessera::kernels
