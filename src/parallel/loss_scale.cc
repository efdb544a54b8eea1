#include "parallel/loss_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace tessera {

namespace {

// All float16 numbers are multiples of this: a smaller scale leaves nothing of a finite gradient.
constexpr double kSmallestHalf = 1.0 / (1 << 24);

[[noreturn]] void give_up(double scale) {
  throw Error(
      fmt::format("the gradients overflow float16 even at the smallest loss scale, {}: train in bf16 or "
                  "float32, lower the learning rate, or look for the cause in the data",
                  scale));
}

}  // namespace

void LossScaler::after_step(bool was_skipped) {
  switch (options_.rule) {
    case LossScaleOptions::Rule::kFixed:
      return;
    case LossScaleOptions::Rule::kTorch:
      return after_torch_step(was_skipped);
    case LossScaleOptions::Rule::kDeepSpeed:
      return after_deepspeed_step(was_skipped);
  }
}

void LossScaler::after_torch_step(bool was_skipped) {
  if (was_skipped) {
    if (state_.scale <= kSmallestHalf) give_up(state_.scale);  // torch continues forever
    state_.scale *= options_.backoff_factor;
    state_.num_clean_steps = 0;
  } else if (++state_.num_clean_steps == options_.growth_interval) {
    // torch keeps the scale in float32 and does not let it grow to infinity.
    const double grown = state_.scale * options_.growth_factor;
    if (std::isfinite(static_cast<float>(grown))) state_.scale = grown;
    state_.num_clean_steps = 0;
  }
}

void LossScaler::after_deepspeed_step(bool was_skipped) {
  if (was_skipped) {
    state_.num_clean_steps = 0;
    if (state_.hysteresis > 1) {
      --state_.hysteresis;
    } else if (state_.scale <= options_.minimum) {
      give_up(options_.minimum);
    } else {
      state_.scale = std::max(state_.scale * options_.backoff_factor, options_.minimum);
    }
    return;
  }
  if (options_.consecutive_hysteresis) state_.hysteresis = options_.hysteresis;
  // The window is counted from the step after a skipped one.
  const std::int64_t num_stable = state_.num_clean_steps++;
  if (num_stable > 0 && num_stable % options_.growth_interval == 0) {
    state_.hysteresis = options_.hysteresis;
    state_.scale *= options_.growth_factor;
  }
}

}  // namespace tessera
