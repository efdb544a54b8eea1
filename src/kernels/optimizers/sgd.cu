#include "kernels/optimizers/cuda_update.cuh"
#include "kernels/optimizers/flat_update.h"

namespace tessera::kernels {
namespace {

template <bool kHasMomentum>
struct SgdStep {
  static constexpr int kNumStates = kHasMomentum ? 1 : 0;
  SgdConstants k;

  __device__ float operator()(float old, float grad, float (&momentum)[1]) const {
    const float g = scaled_gradient(grad, k.gradient_scale, k.weight_decay, old);
    float direction = g;
    if (kHasMomentum) {
      const float kept = k.keep_momentum == 0.0f ? 0.0f : momentum[0];
      momentum[0] = __fmaf_rn(k.keep_momentum, kept, __fmul_rn(k.undampened, g));
      direction = k.nesterov ? __fmaf_rn(k.momentum, momentum[0], g) : momentum[0];
    }
    return __fmaf_rn(k.minus_learning_rate, direction, old);
  }
};

const CudaUpdate registered("sgd", [](const FlatUpdate& flat, const void* constants) {
  const auto& by = *static_cast<const SgdConstants*>(constants);
  by.has_momentum ? launch_update(flat, SgdStep<true>{by}) : launch_update(flat, SgdStep<false>{by});
});

}  // namespace
}  // namespace tessera::kernels
