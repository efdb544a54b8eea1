// SGD as torch.optim.SGD has it, in one pass over memory.
#include "core/error.h"
#include "kernels/optimizers/cpu_loops.h"
#include "kernels/optimizers/flat_update.h"
#include "kernels/optimizers/optimizer_slice.h"

namespace tessera {
namespace kernels {
namespace {

template <typename G, typename C>
inline void sgd_range(float* __restrict params, const G* __restrict grads, C* __restrict copy,
                      float* __restrict momentum, std::int64_t n, const SgdConstants& by) {
  const SgdConstants k = by;
  const auto finish = [&](std::int64_t i, float direction) {
    const float p = fused(k.minus_learning_rate, direction, params[i]);
    params[i] = p;
    if constexpr (!std::is_same_v<C, NoCopy>) copy[i] = static_cast<C>(p);
  };
  const auto gradient = [&](std::int64_t i) {
    return scaled_gradient(static_cast<float>(grads[i]), k.gradient_scale, k.weight_decay, params[i]);
  };
  if (!k.has_momentum) {
    for (std::int64_t i = 0; i < n; ++i) finish(i, gradient(i));
    return;
  }
  const float ahead = k.nesterov ? k.momentum : 0.0f;
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient(i);
    const float old = k.keep_momentum == 0.0f ? 0.0f : momentum[i];
    const float buffer = fused(k.keep_momentum, old, k.undampened * g);
    momentum[i] = buffer;
    finish(i, k.nesterov ? fused(ahead, buffer, g) : buffer);
  }
}

TESSERA_VECTORISED
void sgd_part(const FlatUpdate& flat, const void* by, std::int64_t begin, std::int64_t end) {
  const auto& constants = *static_cast<const SgdConstants*>(by);
  float* momentum = flat.states[0];
  with_types(flat, begin, end, [&](std::int64_t at, std::int64_t n, float* params, const auto* grads, auto* copy) {
    sgd_range(params, grads, copy, momentum == nullptr ? nullptr : momentum + at, n, constants);
  });
}

SgdConstants constants_of(const OptimizerNumbers& numbers, const UpdateNumbers& update) {
  SgdConstants constants;
  constants.gradient_scale = static_cast<float>(update.gradient_scale);
  constants.weight_decay = static_cast<float>(numbers.weight_decay);
  constants.momentum = static_cast<float>(numbers.momentum);
  constants.undampened = update.step == 1 ? 1.0f : static_cast<float>(1.0 - numbers.dampening);
  constants.keep_momentum = update.step == 1 ? 0.0f : static_cast<float>(numbers.momentum);
  constants.has_momentum = numbers.momentum != 0;
  constants.nesterov = numbers.nesterov;
  constants.minus_learning_rate = static_cast<float>(-update.learning_rate);
  return constants;
}

std::vector<OptimizerState> states(const OptimizerNumbers& numbers) {
  if (numbers.momentum == 0) return {};
  return {{"momentum_buffer"}};
}

void check_numbers(const OptimizerNumbers& numbers) {
  check_number("momentum", numbers.momentum, numbers.momentum >= 0, "0 or more");
  check_number("dampening", numbers.dampening, numbers.dampening >= 0, "0 or more");
  check_number("weight_decay", numbers.weight_decay, numbers.weight_decay >= 0, "0 or more");
  if (numbers.nesterov && (numbers.momentum == 0 || numbers.dampening != 0)) {
    throw UsageError("optimizer: nesterov needs momentum and no dampening");
  }
}

// At step 1 the momentum becomes the gradient, undampened; what it held is not read.
void update(const OptimizerSlice& slice, const OptimizerNumbers& numbers, const UpdateNumbers& with) {
  const SgdConstants constants = constants_of(numbers, with);
  run_update("sgd", slice, constants.has_momentum ? 1 : 0, with.step, sgd_part, &constants);
}

}  // namespace
}  // namespace kernels

extern const OptimizerKind kSgd;
const OptimizerKind kSgd = {
    "sgd", {"sgd"}, {"momentum", "nesterov"}, "", kernels::states, kernels::check_numbers, kernels::update};

}  // namespace tessera
