#include "parallel/train_step.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace tessera {
namespace {

void check_type(const char* name, at::ScalarType type) {
  if (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf) return;
  throw UsageError(fmt::format("{} {}: expected Float, BFloat16 or Half", name, c10::toString(type)));
}

EngineOptions engine_options(const World& world, EngineOptions options) {
  check_type("compute_type", options.types.compute);
  check_type("reduce_type", options.types.reduce);
  options.spread = resolve_strategy(std::move(options.spread), world.size());
  return options;
}

}  // namespace

TrainStep::TrainStep(World& world, torch::nn::Module& model, const std::vector<Unit>& units,
                     const TrainStepOptions& options)
    : engine_(world, model, units, engine_options(world, options)) {
  if (options.recomputes) recomputing_.emplace(engine_);
  if (options.loss_scale) scaler_.emplace(*options.loss_scale);
}

void TrainStep::set_optimizer(const OptimizerChoice& choice) {
  optimizer_ = std::make_unique<ShardedOptimizer>(engine_, choice);
}

void TrainStep::backward(const at::Tensor& loss, double factor, bool is_last_micro_step) {
  engine_.backward(factor == 1 ? loss : loss * factor, is_last_micro_step);
}

// An update on the host then overlaps with backward; the price is that no step can be skipped.
void TrainStep::announce(const StepArguments& arguments) {
  const Placement& row = engine_.placement();
  const bool can_wait_for_nothing = arguments.max_norm == 0 && !scaler_ && !arguments.may_skip;
  if (!row.optimizer.is_on_host() || row.delayed_update || !can_wait_for_nothing) return;
  optimizer_->update_during_backward({arguments.learning_rate, arguments.divisor, arguments.max_norm});
}

StepOutcome TrainStep::update(const StepArguments& arguments) {
  const double scale = loss_scale();
  UpdateResult result = optimizer_->update({arguments.learning_rate, arguments.divisor * scale, arguments.max_norm});
  if (scaler_) scaler_->after_step(result.skipped);
  return {std::move(result), scale};
}

}  // namespace tessera
