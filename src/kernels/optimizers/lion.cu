#include "kernels/optimizers/cuda_update.cuh"
#include "kernels/optimizers/flat_update.h"

namespace tessera::kernels {
namespace {

struct LionStep {
  static constexpr int kNumStates = 1;
  LionConstants k;

  __device__ float operator()(float old, float grad, float (&mean)[1]) const {
    const float g = __fmul_rn(grad, k.gradient_scale);
    const float c = __fmaf_rn(k.beta1, mean[0], __fmul_rn(k.one_minus_beta1, g));
    const float sign = static_cast<float>(c > 0) - static_cast<float>(c < 0);
    mean[0] = __fmaf_rn(k.beta2, mean[0], __fmul_rn(k.one_minus_beta2, g));
    return __fmaf_rn(k.minus_learning_rate, sign, __fmul_rn(old, k.keep));
  }
};

const CudaUpdate registered("lion", [](const FlatUpdate& flat, const void* constants) {
  launch_update(flat, LionStep{*static_cast<const LionConstants*>(constants)});
});

}  // namespace
}  // namespace tessera::kernels
