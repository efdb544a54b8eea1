// The factor that keeps half-precision gradients from vanishing, and how it adapts from step to step.
//
// The caller multiplies the loss by scale(), gives the optimizer a divisor that includes it, and reports to after_step
// whether that step was skipped. All ranks see the same norm, so they skip and scale in the same way.
#pragma once

#include <cstdint>

namespace tessera {

struct LossScaleOptions {
  enum class Rule {
    kFixed,      // never changes
    kTorch,      // torch.amp.GradScaler: grows after growth_interval clean steps in a row, shrinks at once
    kDeepSpeed,  // DeepSpeed's: shrinks only when the hysteresis is used up, never below the minimum
  };
  Rule rule = Rule::kTorch;
  double initial = 65536;
  double growth_factor = 2, backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  // DeepSpeed's loss_scale_window
  // kDeepSpeed only.
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;  // a clean step restores it, not only growth
  double minimum = 1;
};

class LossScaler {
 public:
  explicit LossScaler(const LossScaleOptions& options)
      : options_(options), state_{options.initial, 0, options.hysteresis} {}

  double scale() const { return state_.scale; }
  // Throws Error if the rule cannot shrink the scale any further.
  void after_step(bool was_skipped);

  // What a checkpoint keeps.
  struct State {
    double scale = 1;
    std::int64_t num_clean_steps = 0;  // since the last change, or for kDeepSpeed since the last skipped step
    std::int64_t hysteresis = 1;
  };
  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  void after_torch_step(bool was_skipped);
  void after_deepspeed_step(bool was_skipped);

  LossScaleOptions options_;
  State state_;
};

}  // namespace tessera
