#include "kernels/optimizers/cuda_update.cuh"
#include "kernels/optimizers/sgd.h"

namespace tessera::kernels {
namespace {

struct SgdStep {
  SgdConstants k;

  __device__ float operator()(const FlatUpdate& flat, std::int64_t i, float grad) const {
    const float old = flat.params[i];
    const float g = scaled_gradient(grad, k.gradient_scale, k.weight_decay, old);
    float direction = g;
    if (k.has_momentum) {
      float* momentum = flat.states[0];
      const float kept = k.keep_momentum == 0.0f ? 0.0f : momentum[i];
      const float buffer = __fmaf_rn(k.keep_momentum, kept, __fmul_rn(k.undampened, g));
      momentum[i] = buffer;
      direction = k.nesterov ? __fmaf_rn(k.momentum, buffer, g) : buffer;
    }
    return __fmaf_rn(k.minus_learning_rate, direction, old);
  }
};

const CudaUpdate registered("sgd", [](const FlatUpdate& flat, const void* constants) {
  launch_update(flat, SgdStep{*static_cast<const SgdConstants*>(constants)});
});

}  // namespace
}  // namespace tessera::kernels
