// Copies or adds several tensors into one flat buffer at once: the gradients of a unit's biases and norms, which would
// otherwise cost one launch each.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace tessera::kernels {

struct FlatPart {
  at::Tensor values;  // of any shape; float32, bfloat16 or float16
  std::int64_t offset = 0;
  bool adds = false;  // to what is there; else replaces it
};

// flat: [n], float32, bfloat16 or float16, on the device of all parts, which do not overlap. Gives the same values as
// copy_() or add_() of each part.
void put_parts(const at::Tensor& flat, const std::vector<FlatPart>& parts);

}  // namespace tessera::kernels
