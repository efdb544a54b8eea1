// AdamW, and Adam, which adds the decay to the gradient: as torch.optim has them, in one pass over memory.
#include <cmath>

#include "kernels/optimizers/adamw_neon.h"
#include "kernels/optimizers/cpu_loops.h"
#include "kernels/optimizers/flat_update.h"
#include "kernels/optimizers/optimizer_slice.h"

namespace tessera {
namespace kernels {
namespace {

#if defined(__aarch64__)

// Calls f with typed pointers to gradients and copy.
template <typename F>
inline void with_all_types(const FlatUpdate& flat, std::int64_t begin, F f) {
  const auto with_copy = [&](const auto* grads) {
    if (flat.copy == nullptr) return f(grads + begin, static_cast<NoCopy*>(nullptr));
    if (flat.copy_type == NumberType::kBFloat16)
      return f(grads + begin, static_cast<c10::BFloat16*>(flat.copy) + begin);
    f(grads + begin, static_cast<c10::Half*>(flat.copy) + begin);
  };
  if (flat.grad_type == NumberType::kFloat32) return with_copy(static_cast<const float*>(flat.grads));
  if (flat.grad_type == NumberType::kBFloat16) return with_copy(static_cast<const c10::BFloat16*>(flat.grads));
  with_copy(static_cast<const c10::Half*>(flat.grads));
}

void adamw_part(const FlatUpdate& flat, const void* by, std::int64_t begin, std::int64_t end) {
  const auto& constants = *static_cast<const AdamWConstants*>(by);
  if (flat.remainder != nullptr) {
    return with_types(flat, begin, end, [&](std::int64_t at, std::int64_t n, float* params, const auto* grads, auto*) {
      adamw_neon(params, grads, static_cast<NoCopy*>(nullptr), flat.states[0] + at, flat.states[1] + at, n, constants);
    });
  }
  with_all_types(flat, begin, [&](const auto* grads, auto* copy) {
    adamw_neon(flat.params + begin, grads, copy, flat.states[0] + begin, flat.states[1] + begin, end - begin,
               constants);
  });
}

#else

// kSplit: the masters are halves (flat_buffers.h), else params; the other pointers are not read.
template <bool kSplit, typename G, typename C>
inline void adamw_range(float* __restrict params, c10::BFloat16* __restrict halves, std::int16_t* __restrict remainders,
                        const G* __restrict grads, C* __restrict copy, float* __restrict mean,
                        float* __restrict square_mean, std::int64_t n, const AdamWConstants& by) {
  const AdamWConstants k = by;  // in registers
  for (std::int64_t i = 0; i < n; ++i) {
    const float before = kSplit ? joined(halves[i], remainders[i]) : params[i];
    const float g = scaled_gradient(static_cast<float>(grads[i]), k.gradient_scale, k.l2, before);
    const float m = fused(g - mean[i], k.one_minus_beta1, mean[i]);
    const float v = fused(k.one_minus_beta2 * g, g, k.beta2 * square_mean[i]);
    const float denominator = fused(__builtin_sqrtf(v), k.inverse_root, k.eps);
    const float p = fused(k.minus_step_size, m / denominator, before * k.keep);
    mean[i] = m;
    square_mean[i] = v;
    if constexpr (kSplit) {
      split(p, halves[i], remainders[i]);
    } else {
      params[i] = p;
    }
    if constexpr (!std::is_same_v<C, NoCopy>) copy[i] = static_cast<C>(p);
  }
}

TESSERA_VECTORISED
void adamw_part(const FlatUpdate& flat, const void* by, std::int64_t begin, std::int64_t end) {
  const auto& constants = *static_cast<const AdamWConstants*>(by);
  float *mean = flat.states[0], *square_mean = flat.states[1];
  // Halves, the offloaded masters, in registers: through a buffer, the memory would be read in bursts.
  const auto in_halves = [&](const auto* grads) {
    adamw_range<true>(nullptr, static_cast<c10::BFloat16*>(flat.copy) + begin, flat.remainder + begin, grads + begin,
                      static_cast<NoCopy*>(nullptr), mean + begin, square_mean + begin, end - begin, constants);
  };
  if (flat.remainder != nullptr && flat.grad_type == NumberType::kBFloat16) {
    return in_halves(static_cast<const c10::BFloat16*>(flat.grads));
  }
  if (flat.remainder != nullptr && flat.grad_type == NumberType::kFloat32) {
    return in_halves(static_cast<const float*>(flat.grads));
  }
  with_types(flat, begin, end, [&](std::int64_t at, std::int64_t n, float* params, const auto* grads, auto* copy) {
    adamw_range<false>(params, nullptr, nullptr, grads, copy, mean + at, square_mean + at, n, constants);
  });
}

#endif

AdamWConstants constants_of(const OptimizerNumbers& numbers, const UpdateNumbers& update, bool decoupled) {
  const double t = static_cast<double>(update.step);
  AdamWConstants constants;
  constants.gradient_scale = static_cast<float>(update.gradient_scale);
  constants.l2 = decoupled ? 0.0f : static_cast<float>(numbers.weight_decay);
  constants.keep = decoupled ? static_cast<float>(1.0 - update.learning_rate * numbers.weight_decay) : 1.0f;
  constants.one_minus_beta1 = static_cast<float>(1.0 - numbers.beta1);
  constants.beta2 = static_cast<float>(numbers.beta2);
  constants.one_minus_beta2 = static_cast<float>(1.0 - numbers.beta2);
  constants.inverse_root = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(numbers.beta2, t)));
  constants.eps = static_cast<float>(numbers.epsilon);
  constants.minus_step_size = static_cast<float>(-update.learning_rate / (1.0 - std::pow(numbers.beta1, t)));
  return constants;
}

std::vector<OptimizerState> states(const OptimizerNumbers&) {
  return {{"exp_avg"}, {"exp_avg_sq"}};
}

void check_numbers(const OptimizerNumbers& numbers) {
  check_number("beta1", numbers.beta1, numbers.beta1 >= 0 && numbers.beta1 < 1, "a number in [0, 1)");
  check_number("beta2", numbers.beta2, numbers.beta2 >= 0 && numbers.beta2 < 1, "a number in [0, 1)");
  check_number("eps", numbers.epsilon, numbers.epsilon >= 0, "0 or more");
  check_number("weight_decay", numbers.weight_decay, numbers.weight_decay >= 0, "0 or more");
}

template <bool kDecoupled>
void update(const OptimizerSlice& slice, const OptimizerNumbers& numbers, const UpdateNumbers& with) {
  const AdamWConstants constants = constants_of(numbers, with, kDecoupled);
  run_update("adamw", slice, 2, with.step, adamw_part, &constants);
}

}  // namespace
}  // namespace kernels

extern const OptimizerKind kAdamW, kAdam;
const OptimizerKind kAdamW = {"adamw",
                              {"adamw_torch_fused", "adamw_torch", "adamw_apex_fused", "adamw_hf", "adamw"},
                              {"adam_beta1", "adam_beta2", "adam_epsilon"},
                              "all names of AdamW are one, fused",
                              kernels::states,
                              kernels::check_numbers,
                              kernels::update<true>};
const OptimizerKind kAdam = {"adam",
                             {"adam"},
                             {"adam_beta1", "adam_beta2", "adam_epsilon"},
                             "adam: adds the decay to the gradient",
                             kernels::states,
                             kernels::check_numbers,
                             kernels::update<false>};

}  // namespace tessera
