// What the optimizers' CUDA kernels share: one thread per number.
#pragma once

#include "kernels/cuda_common.cuh"
#include "kernels/optimizers/flat_update.h"

namespace tessera::kernels {

// Multiplications and additions are fused where it is written and nowhere else, as on the CPU (cpu_loops.h).
__device__ inline float scaled_gradient(float grad, float scale, float decay, float param) {
  const float scaled = __fmul_rn(grad, scale);
  return decay == 0.0f ? scaled : __fmaf_rn(decay, param, scaled);
}

template <typename Step, typename G, typename C, bool kCopies>
__global__ void update_each(FlatUpdate flat, const G* grads, C* copy, Step step) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= flat.numel) return;
  const float p = step(flat, i, to_float(grads[i]));
  flat.params[i] = p;
  if (kCopies) copy[i] = from_float<C>(p);
}

// `step(flat, i, gradient)` updates the states of number i and returns its new value.
template <typename Step>
void launch_update(const FlatUpdate& flat, Step step) {
  constexpr int kThreads = 256;
  const auto num_blocks = static_cast<unsigned>((flat.numel + kThreads - 1) / kThreads);
  const auto stream = static_cast<cudaStream_t>(flat.stream);
  with_type(flat.grad_type, [&](auto* type) {
    using G = std::remove_pointer_t<decltype(type)>;
    const auto* grads = static_cast<const G*>(flat.grads);
    if (flat.copy == nullptr) {
      update_each<Step, G, __half, false><<<num_blocks, kThreads, 0, stream>>>(flat, grads, nullptr, step);
    } else if (flat.copy_type == NumberType::kBFloat16) {
      update_each<Step, G, __nv_bfloat16, true>
          <<<num_blocks, kThreads, 0, stream>>>(flat, grads, static_cast<__nv_bfloat16*>(flat.copy), step);
    } else {
      update_each<Step, G, __half, true>
          <<<num_blocks, kThreads, 0, stream>>>(flat, grads, static_cast<__half*>(flat.copy), step);
    }
  });
}

}  // namespace tessera::kernels
