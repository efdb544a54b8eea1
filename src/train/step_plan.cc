#include "train/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace tessera {

namespace {

constexpr double kMostSteps = 1e15;  // far below 2^53: every count is exact as a double

void check(const StepPlanOptions& options) {
  if (options.num_batches < 1) {
    throw UsageError("there is nothing to train on: the data set gives this rank no batch per epoch");
  }
  if (options.accumulation < 1) {
    throw UsageError(fmt::format("gradient_accumulation_steps is {}: expected at least 1", options.accumulation));
  }
  if (options.max_steps == 0 || options.max_steps < -1) {
    throw UsageError(
        fmt::format("max_steps is {}: expected at least 1, or -1 to use num_train_epochs", options.max_steps));
  }
  if (options.max_steps < 0 && !(options.num_train_epochs > 0 && std::isfinite(options.num_train_epochs))) {
    throw UsageError(fmt::format("num_train_epochs is {}: expected a number above 0", options.num_train_epochs));
  }
}

std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return value / by + (value % by > 0 ? 1 : 0);
}

}  // namespace

StepPlan::StepPlan(const StepPlanOptions& options) : options_(options) {
  check(options);
  updates_per_epoch_ = divide_up(options.num_batches, options.accumulation);
  const std::int64_t counted = options.short_group == ShortGroup::kCounted
                                   ? updates_per_epoch_
                                   : std::max<std::int64_t>(options.num_batches / options.accumulation, 1);
  if (options.max_steps > 0) {
    total_steps_ = options.max_steps;
    num_epochs_ = divide_up(options.max_steps, counted);
    return;
  }
  const double total = std::ceil(options.num_train_epochs * static_cast<double>(counted));
  if (total > kMostSteps) {
    throw UsageError(fmt::format("num_train_epochs is {}: with {} updates per epoch the run would never end",
                                 options.num_train_epochs, counted));
  }
  total_steps_ = static_cast<std::int64_t>(total);
  num_epochs_ = static_cast<std::int64_t>(std::ceil(options.num_train_epochs));
}

Update StepPlan::update(std::int64_t step) const {
  if (step < 1 || step > total_steps_) {
    throw Error(fmt::format("update {} of a run that has updates 1 to {}", step, total_steps_));
  }
  Update update;
  update.step = step;
  update.epoch = (step - 1) / updates_per_epoch_;
  const std::int64_t group = (step - 1) % updates_per_epoch_;
  update.first_batch = group * options_.accumulation;
  update.num_batches = std::min(options_.accumulation, options_.num_batches - update.first_batch);
  const std::int64_t batches_done = update.first_batch + update.num_batches;
  update.epoch_after =
      static_cast<double>(update.epoch) + static_cast<double>(batches_done) / static_cast<double>(options_.num_batches);
  update.ends_epoch = batches_done == options_.num_batches;
  update.ends_run = step == total_steps_;
  return update;
}

double StepPlan::train_samples(std::int64_t num_rows, std::int64_t batch_of_update) const {
  if (options_.max_steps > 0) return static_cast<double>(options_.max_steps) * static_cast<double>(batch_of_update);
  return static_cast<double>(num_rows) * options_.num_train_epochs;
}

}  // namespace tessera
