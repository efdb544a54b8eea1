#include "kernels/sgd.h"

#include "kernels/cuda_kernels.h"
#include "kernels/flat_buffers.h"
#include "kernels/optimizer_cpu.h"

namespace tessera::kernels {
namespace {

constexpr const char* kName = "sgd_step";

void check_inputs(const SgdBuffers& buffers, const Sgd& how, std::int64_t step) {
  const auto& params = buffers.params;
  check_flat(params, params, {at::kFloat}, kName, "params");
  check_flat(params, buffers.grads, {at::kFloat, at::kBFloat16, at::kHalf}, kName, "grads");
  if (how.momentum != 0) {
    check_flat(params, buffers.momentum.value_or(at::Tensor()), {at::kFloat}, kName, "momentum");
  }
  if (buffers.copy) check_flat(params, *buffers.copy, {at::kBFloat16, at::kHalf}, kName, "copy");
  check(step >= 1, kName, fmt::format("a step from 1 on but got {}", step));
  check(!how.nesterov || (how.momentum > 0 && how.dampening == 0), kName,
        fmt::format("momentum above 0 and no dampening with nesterov but got {} and {}", how.momentum, how.dampening));
}

SgdConstants constants_of(const Sgd& how, std::int64_t step) {
  SgdConstants constants;
  constants.gradient_scale = static_cast<float>(how.gradient_scale);
  constants.weight_decay = static_cast<float>(how.weight_decay);
  constants.momentum = static_cast<float>(how.momentum);
  constants.undampened = step == 1 ? 1.0f : static_cast<float>(1.0 - how.dampening);
  constants.keep_momentum = step == 1 ? 0.0f : static_cast<float>(how.momentum);
  constants.has_momentum = how.momentum != 0;
  constants.nesterov = how.nesterov;
  constants.minus_learning_rate = static_cast<float>(-how.learning_rate);
  return constants;
}

}  // namespace

void sgd_step(const SgdBuffers& buffers, const Sgd& how, std::int64_t step) {
  check_inputs(buffers, how, step);
  if (buffers.params.numel() == 0) return;
  const auto constants = constants_of(how, step);
  const auto momentum = constants.has_momentum ? *buffers.momentum : at::Tensor();
  if (buffers.params.is_cuda()) {
    return cuda_kernels().sgd(buffers.params, buffers.grads, momentum, buffers.copy.value_or(at::Tensor()), constants);
  }
  sgd_cpu(flat_step(buffers.params, buffers.grads, buffers.copy),
          momentum.defined() ? momentum.mutable_data_ptr<float>() : nullptr, constants);
}

}  // namespace tessera::kernels
