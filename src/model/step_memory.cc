#include "model/step_memory.h"

namespace tessera {

std::int64_t product_scratch_bytes(const StepShape& shape, std::int64_t M, std::int64_t K, std::int64_t N,
                                   bool is_weight_gradient) {
  if (shape.on_gpu || shape.element_bytes == kFloatBytes) return 0;
  // oneDNN on ARM, as measured: both factors reordered, K padded to 4, M and N to 8; one more copy of a transposed
  // factor; eight rows of float32 sums and a little more.
  const auto up = [](std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; };
  const std::int64_t e = shape.element_bytes, transposed = is_weight_gradient ? M * K * e : 0;
  return (up(K, 4) * up(N, 8) + up(M, 8) * up(K, 4)) * e + transposed + 8 * up(N, 8) * kFloatBytes + 4352;
}

}  // namespace tessera
