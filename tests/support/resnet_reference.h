// For tests: tests/data/resnet, the results of torchvision's ResNet-50 with weights from a formula.
#pragma once

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "model/resnet.h"

namespace tessera {

inline Json resnet_reference() {
  return read_json_file(std::string(TESSERA_TEST_DATA_FOLDER) + "/resnet/reference.json");
}

// Rows of numbers, such as logits, in double.
inline at::Tensor resnet_rows(const Json& rows) {
  std::vector<double> values;
  for (const Json& row : rows) {
    for (const Json& value : row) values.push_back(value.get<double>());
  }
  return at::tensor(values, at::kDouble).view({std::ssize(rows), -1});
}

// tools/references/resnet.py's noise(), integer for integer.
inline at::Tensor resnet_noise(std::int64_t count, std::int64_t salt) {
  constexpr std::int64_t kMask = 0xffffffff;
  at::Tensor h = (at::arange(count, at::kLong) * 1597334677 + (salt + 1) * 40503).bitwise_and(kMask);
  h = (h.bitwise_xor(h.bitwise_right_shift(15)) * 1103515245).bitwise_and(kMask);
  h = (h.bitwise_xor(h.bitwise_right_shift(13)) * 1597334677).bitwise_and(kMask);
  return h.bitwise_xor(h.bitwise_right_shift(16)).to(at::kDouble) / 4294967296.0 - 0.5;
}

inline at::Tensor resnet_images() {
  return (4 * resnet_noise(4 * 3 * 64 * 64, 1000)).view({4, 3, 64, 64});
}

// Parameters and buffers in the order of torchvision's state_dict: module by module, parameters before buffers.
inline std::vector<std::pair<std::string, at::Tensor>> resnet_state(const torch::nn::Module& model) {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (const auto& module : model.named_modules("", /*include_self=*/false)) {
    const std::string prefix = module.key() + ".";
    for (const auto& one : module.value()->named_parameters(false)) state.emplace_back(prefix + one.key(), one.value());
    for (const auto& one : module.value()->named_buffers(false)) state.emplace_back(prefix + one.key(), one.value());
  }
  return state;
}

inline void fill_by_formula(ResNet50& model) {
  const at::NoGradGuard no_grad;
  std::int64_t salt = 0;
  for (auto& [name, tensor] : resnet_state(model)) {
    const at::Tensor u = resnet_noise(tensor.numel(), salt++).view(tensor.sizes());
    if (name.ends_with("num_batches_tracked")) continue;
    if (tensor.dim() == 4) {
      const double fan_out = static_cast<double>(tensor.size(0) * tensor.size(2) * tensor.size(3));
      tensor.copy_(u * std::sqrt(24.0 / fan_out));
    } else if (name.starts_with("fc.")) {
      tensor.copy_(u * 0.1);
    } else if (name.ends_with("bn3.weight")) {
      tensor.copy_(0.2 + 0.1 * u);
    } else if (name.ends_with("running_var") || name.ends_with("weight")) {
      tensor.copy_(1 + 0.5 * u);
    } else {
      tensor.copy_(0.2 * u);
    }
  }
}

}  // namespace tessera
