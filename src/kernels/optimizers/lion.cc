// Lion (Chen et al. 2023, 'Symbolic Discovery of Optimization Algorithms'), as Hugging Face's lion_32bit asks for it:
//   c = beta1 * m + (1 - beta1) * g;  p = p * (1 - lr * decay) - lr * sign(c);  m = beta2 * m + (1 - beta2) * g
#include "kernels/optimizers/cpu_loops.h"
#include "kernels/optimizers/flat_update.h"
#include "kernels/optimizers/optimizer_slice.h"

namespace tessera {
namespace kernels {
namespace {

template <typename G, typename C>
inline void lion_range(float* __restrict params, const G* __restrict grads, C* __restrict copy, float* __restrict mean,
                       std::int64_t n, const LionConstants& by) {
  const LionConstants k = by;  // in registers
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = static_cast<float>(grads[i]) * k.gradient_scale;
    const float c = fused(k.beta1, mean[i], k.one_minus_beta1 * g);
    const float sign = static_cast<float>(c > 0) - static_cast<float>(c < 0);
    const float p = fused(k.minus_learning_rate, sign, params[i] * k.keep);
    mean[i] = fused(k.beta2, mean[i], k.one_minus_beta2 * g);
    params[i] = p;
    if constexpr (!std::is_same_v<C, NoCopy>) copy[i] = static_cast<C>(p);
  }
}

TESSERA_VECTORISED
void lion_part(const FlatUpdate& flat, const void* by, std::int64_t begin, std::int64_t end) {
  const auto& constants = *static_cast<const LionConstants*>(by);
  with_types(flat, begin, end, [&](std::int64_t at, std::int64_t n, float* params, const auto* grads, auto* copy) {
    lion_range(params, grads, copy, flat.states[0] + at, n, constants);
  });
}

std::vector<OptimizerState> states(const OptimizerNumbers&) {
  return {{"exp_avg"}};
}

void check_numbers(const OptimizerNumbers& numbers) {
  check_number("beta1", numbers.beta1, numbers.beta1 >= 0 && numbers.beta1 < 1, "a number in [0, 1)");
  check_number("beta2", numbers.beta2, numbers.beta2 >= 0 && numbers.beta2 < 1, "a number in [0, 1)");
  check_number("weight_decay", numbers.weight_decay, numbers.weight_decay >= 0, "0 or more");
}

void update(const OptimizerSlice& slice, const OptimizerNumbers& numbers, const UpdateNumbers& with) {
  const LionConstants constants = {.gradient_scale = static_cast<float>(with.gradient_scale),
                                   .beta1 = static_cast<float>(numbers.beta1),
                                   .one_minus_beta1 = static_cast<float>(1.0 - numbers.beta1),
                                   .beta2 = static_cast<float>(numbers.beta2),
                                   .one_minus_beta2 = static_cast<float>(1.0 - numbers.beta2),
                                   .keep = static_cast<float>(1.0 - with.learning_rate * numbers.weight_decay),
                                   .minus_learning_rate = static_cast<float>(-with.learning_rate)};
  run_update("lion", slice, 1, with.step, lion_part, &constants);
}

}  // namespace
}  // namespace kernels

extern const OptimizerKind kLion;
const OptimizerKind kLion = {
    "lion", {"lion_32bit"}, {"adam_beta1", "adam_beta2"}, "", kernels::states, kernels::check_numbers, kernels::update};

}  // namespace tessera
