// An optimizer's update as the engine calls it: tensors in, the right loop for their device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/optimizers/flat_update.h"
#include "kernels/optimizers/optimizer.h"

namespace tessera {

// All are [n], contiguous, on one device.
struct OptimizerSlice {
  at::Tensor params;                 // float32: the master values; undefined if there is a remainder
  at::Tensor grads;                  // float32, bfloat16 or float16
  std::vector<at::Tensor> states{};  // float32, in the order of OptimizerKind::states
  at::Tensor copy{};                 // bfloat16 or float16: receives the new values, rounded; undefined: none
  // int16: the master values are the copy, which is bfloat16, and this together (flat_buffers.h).
  at::Tensor remainder{};
};

namespace kernels {

// Numbers [begin, end) of an update, on the CPU.
using PartUpdateFunction = void (*)(const FlatUpdate& flat, const void* constants, std::int64_t begin,
                                    std::int64_t end);

// Checks the slice and runs `on_cpu` over its parts, or what a .cu file has registered under the optimizer's name.
// Throws Error naming the buffer that does not fit.
void run_update(const char* optimizer, const OptimizerSlice& slice, std::size_t num_states, std::int64_t step,
                PartUpdateFunction on_cpu, const void* constants);

}  // namespace kernels
}  // namespace tessera
