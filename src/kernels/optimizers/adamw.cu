#include "kernels/optimizers/cuda_update.cuh"
#include "kernels/optimizers/flat_update.h"

namespace tessera::kernels {
namespace {

struct AdamWStep {
  static constexpr int kNumStates = 2;
  AdamWConstants k;

  __device__ float operator()(float old, float grad, float (&states)[2]) const {
    const float g = scaled_gradient(grad, k.gradient_scale, k.l2, old);
    const float m = __fmaf_rn(__fsub_rn(g, states[0]), k.one_minus_beta1, states[0]);
    const float v = __fmaf_rn(__fmul_rn(k.one_minus_beta2, g), g, __fmul_rn(k.beta2, states[1]));
    const float denominator = __fmaf_rn(__fsqrt_rn(v), k.inverse_root, k.eps);
    states[0] = m;
    states[1] = v;
    return __fmaf_rn(k.minus_step_size, __fdiv_rn(m, denominator), __fmul_rn(old, k.keep));
  }
};

const CudaUpdate registered("adamw", [](const FlatUpdate& flat, const void* constants) {
  launch_update(flat, AdamWStep{*static_cast<const AdamWConstants*>(constants)});
});

}  // namespace
}  // namespace tessera::kernels
