#include "kernels/adamw.h"

#include <cmath>

#include "kernels/cuda_kernels.h"
#include "kernels/flat_buffers.h"
#include "kernels/optimizer_cpu.h"

namespace tessera::kernels {
namespace {

constexpr const char* kName = "adamw_step";

void check_inputs(const AdamWBuffers& buffers, const AdamW& how, std::int64_t step) {
  const auto& params = buffers.params;
  check_flat(params, params, {at::kFloat}, kName, "params");
  check_flat(params, buffers.grads, {at::kFloat, at::kBFloat16, at::kHalf}, kName, "grads");
  check_flat(params, buffers.mean, {at::kFloat}, kName, "mean");
  check_flat(params, buffers.square_mean, {at::kFloat}, kName, "square_mean");
  if (buffers.copy) check_flat(params, *buffers.copy, {at::kBFloat16, at::kHalf}, kName, "copy");
  check(step >= 1, kName, fmt::format("a step from 1 on but got {}", step));
  check(how.beta1 >= 0 && how.beta1 < 1 && how.beta2 >= 0 && how.beta2 < 1, kName,
        fmt::format("betas in [0, 1) but got {} and {}", how.beta1, how.beta2));
  check(how.eps >= 0, kName, fmt::format("eps of 0 or more but got {}", how.eps));
}

AdamWConstants constants_of(const AdamW& how, std::int64_t step) {
  const double t = static_cast<double>(step);
  AdamWConstants constants;
  constants.gradient_scale = static_cast<float>(how.gradient_scale);
  constants.l2 = how.decoupled ? 0.0f : static_cast<float>(how.weight_decay);
  constants.keep = how.decoupled ? static_cast<float>(1.0 - how.learning_rate * how.weight_decay) : 1.0f;
  constants.one_minus_beta1 = static_cast<float>(1.0 - how.beta1);
  constants.beta2 = static_cast<float>(how.beta2);
  constants.one_minus_beta2 = static_cast<float>(1.0 - how.beta2);
  constants.inverse_root = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(how.beta2, t)));
  constants.eps = static_cast<float>(how.eps);
  constants.minus_step_size = static_cast<float>(-how.learning_rate / (1.0 - std::pow(how.beta1, t)));
  return constants;
}

}  // namespace

void adamw_step(const AdamWBuffers& buffers, const AdamW& how, std::int64_t step) {
  check_inputs(buffers, how, step);
  if (buffers.params.numel() == 0) return;
  const auto constants = constants_of(how, step);
  if (buffers.params.is_cuda()) {
    return cuda_kernels().adamw(buffers.params, buffers.grads, buffers.mean, buffers.square_mean,
                                buffers.copy.value_or(at::Tensor()), constants);
  }
  adamw_cpu(flat_step(buffers.params, buffers.grads, buffers.copy), buffers.mean.mutable_data_ptr<float>(),
            buffers.square_mean.mutable_data_ptr<float>(), constants);
}

}  // namespace tessera::kernels
