// One update of a model that is spread over ranks: `tessera train` and the public library are built on it.
//
//   TrainStep step(world, *model, model->units(), options);
//   step.set_optimizer(choose_optimizer("adamw", {.weight_decay = 0.01}));
//   for each update:
//     for each micro-batch:
//       at::Tensor loss;
//       {
//         const auto pass = step.forward();               // gathers the root; step.runner() works while it lives
//         loss = model->loss(batch, step.runner()).sum;
//       }
//       if (is_last) step.announce(arguments);            // optional: the update may then start within backward
//       step.backward(loss, step.loss_factor(num_counted), is_last);
//     const StepOutcome outcome = step.update(arguments);  // clips and updates; skips if the gradient is not finite
//
// It owns engine, optimizer, loss scale and recomputation. All ranks make the same calls in the same order; one thread
// at a time. The model must outlive it, and every graph made under it must be destroyed before it.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/run_modes.h"
#include "parallel/engine.h"
#include "parallel/loss_scale.h"
#include "parallel/sharded_optimizer.h"

namespace tessera {

// The strategy may be "auto". Types are float32, bfloat16 and float16.
struct TrainStepOptions : EngineOptions {
  std::optional<LossScaleOptions> loss_scale;  // none: losses are not scaled
  bool recomputes = false;                     // keep only the inputs of units for backward, and recompute the rest
};

struct StepArguments {
  double learning_rate = 0;
  double divisor = 1;    // of the summed gradient; the loss scale is not part of it
  double max_norm = 0;   // clips the divided gradient's norm over all parameters; 0: no clipping
  bool may_skip = true;  // false: a gradient that is not finite may end the run, so updates need not wait for the norm
};

struct StepOutcome : UpdateResult {
  double loss_scale = 1;  // the factor of this step's losses
};

class TrainStep {
 public:
  // Collective. Throws UsageError if the options do not fit the ranks, Error naming the first difference if the ranks'
  // models or options differ.
  TrainStep(World& world, torch::nn::Module& model, const std::vector<Unit>& units, const TrainStepOptions& options);

  // Call it before the first update; a later call sets another optimizer, with fresh state. Throws UsageError if a
  // number is out of range.
  void set_optimizer(const OptimizerChoice& choice);
  void remove_optimizer() { optimizer_.reset(); }

  [[nodiscard]] Engine::Pass forward() { return engine_.forward(); }
  // What the model runs its units through: the engine, with or without recomputation.
  UnitRunner& runner() { return recomputing_ ? static_cast<UnitRunner&>(*recomputing_) : engine_; }

  // What to multiply a loss by before backward: the loss scale over `divisor`. float16 ends at 65504, so a sum over
  // tokens is better divided here than in the update.
  double loss_factor(double divisor = 1) const { return loss_scale() / divisor; }
  void backward(const at::Tensor& loss, double factor, bool is_last_micro_step);

  // Call it before the last micro-step's backward: an offloaded update that needs neither norm nor scale then runs
  // within it.
  void announce(const StepArguments& arguments);
  // After announce(), with the same arguments.
  StepOutcome update(const StepArguments& arguments);
  // ShardedOptimizer::update_after
  void update_after(std::vector<Transfer> reads) { optimizer_->update_after(std::move(reads)); }

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  ShardedOptimizer& optimizer() { return *optimizer_; }
  const ShardedOptimizer& optimizer() const { return *optimizer_; }
  // Null: losses are not scaled.
  LossScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }
  const LossScaler* scaler() const { return scaler_ ? &*scaler_ : nullptr; }
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }

 private:
  Engine engine_;
  std::optional<CheckpointRunner> recomputing_;
  std::optional<LossScaler> scaler_;
  std::unique_ptr<ShardedOptimizer> optimizer_;
};

}  // namespace tessera
