#include "kernels/optimizers/adamw.h"
#include "kernels/optimizers/cuda_update.cuh"

namespace tessera::kernels {
namespace {

struct AdamWStep {
  AdamWConstants k;

  __device__ float operator()(const FlatUpdate& flat, std::int64_t i, float grad) const {
    float *mean = flat.states[0], *square_mean = flat.states[1];
    const float old = flat.params[i], old_mean = mean[i];
    const float g = scaled_gradient(grad, k.gradient_scale, k.l2, old);
    const float m = __fmaf_rn(__fsub_rn(g, old_mean), k.one_minus_beta1, old_mean);
    const float v = __fmaf_rn(__fmul_rn(k.one_minus_beta2, g), g, __fmul_rn(k.beta2, square_mean[i]));
    const float denominator = __fmaf_rn(__fsqrt_rn(v), k.inverse_root, k.eps);
    mean[i] = m;
    square_mean[i] = v;
    return __fmaf_rn(k.minus_step_size, __fdiv_rn(m, denominator), __fmul_rn(old, k.keep));
  }
};

const CudaUpdate registered("adamw", [](const FlatUpdate& flat, const void* constants) {
  launch_update(flat, AdamWStep{*static_cast<const AdamWConstants*>(constants)});
});

}  // namespace
}  // namespace tessera::kernels
