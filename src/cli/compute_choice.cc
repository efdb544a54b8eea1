#include "cli/compute_choice.h"

#include <fmt/format.h>

#include "comm/gpu_support.h"
#include "core/error.h"
#include "core/text.h"

namespace tessera {

at::Device choose_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  const GpuSupport* gpus = gpu_support();
  if (gpus == nullptr || gpus->num_gpus() == 0) {
    if (name == "auto" && !gpus_are_unfit()) return at::kCPU;
    throw UsageError(
        fmt::format("--device {}: there is no GPU to use here ({}); give --device cpu", name, no_gpu_reason()));
  }
  gpus->set_device(0);
  return {at::kCUDA, 0};
}

const std::vector<std::string>& compute_type_names() {
  static const std::vector<std::string> names = {"float32", "bfloat16", "float16", "fp32", "bf16", "fp16"};
  return names;
}

at::ScalarType type_of_name(const std::string& name) {
  if (name == "float32" || name == "fp32") return at::kFloat;
  if (name == "bfloat16" || name == "bf16") return at::kBFloat16;
  if (name == "float16" || name == "fp16") return at::kHalf;
  throw UsageError(fmt::format("type '{}': expected one of {}", printable(name), join(compute_type_names(), ", ")));
}

}  // namespace tessera
