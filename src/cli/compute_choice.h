// --device and --dtype of the commands that run a model without ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace tessera {

// "cpu", "cuda", or "auto": the GPU if there is one. Throws UsageError if "cuda" is requested and there is none.
at::Device choose_device(const std::string& name);

// "float32", "bfloat16", "float16" and their short names; the setting's choices are these.
at::ScalarType type_of_name(const std::string& name);
const std::vector<std::string>& compute_type_names();

}  // namespace tessera
