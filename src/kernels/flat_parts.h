// Several tensors into one flat buffer at once: the gradients of a unit's biases and norms, which one by one would each
// cost a launch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace tessera::kernels {

struct FlatPart {
  at::Tensor values;  // of any shape; float32, bfloat16 or float16
  std::int64_t offset = 0;
  bool adds = false;  // to what is there, else in its place
};

// flat: [n], float32, bfloat16 or float16, on the device of all parts, which do not overlap. The same numbers as
// copy_() and add_() of each part.
void put_parts(const at::Tensor& flat, const std::vector<FlatPart>& parts);

}  // namespace tessera::kernels
