#include "kernels/optimizers/cuda_update.cuh"
#include "kernels/optimizers/lion.h"

namespace tessera::kernels {
namespace {

struct LionStep {
  LionConstants k;

  __device__ float operator()(const FlatUpdate& flat, std::int64_t i, float grad) const {
    float* mean = flat.states[0];
    const float g = __fmul_rn(grad, k.gradient_scale);
    const float c = __fmaf_rn(k.beta1, mean[i], __fmul_rn(k.one_minus_beta1, g));
    const float sign = static_cast<float>(c > 0) - static_cast<float>(c < 0);
    mean[i] = __fmaf_rn(k.beta2, mean[i], __fmul_rn(k.one_minus_beta2, g));
    return __fmaf_rn(k.minus_learning_rate, sign, __fmul_rn(flat.params[i], k.keep));
  }
};

const CudaUpdate registered("lion", [](const FlatUpdate& flat, const void* constants) {
  launch_update(flat, LionStep{*static_cast<const LionConstants*>(constants)});
});

}  // namespace
}  // namespace tessera::kernels
