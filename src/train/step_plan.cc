#include "train/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/log.h"
#include "settings/load.h"
#include "train/task.h"

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

// Whether the run has made the updates that this plan has up to its position.
bool continues_groups(const StepPlanOptions& options, std::int64_t updates_per_epoch) {
  const ResumedPlan& resumed = *options.resumed;
  const std::int64_t rows_of_update = options.rows_per_batch * options.accumulation;
  return resumed.position.num_taken % rows_of_update == 0 &&
         resumed.step == resumed.position.epoch * updates_per_epoch + resumed.position.num_taken / rows_of_update;
}

bool has_position_in(const RunState& before, std::int64_t num_rows) {
  return before.progress.position && before.shape.num_rows == num_rows;
}

}  // namespace

StepPlan::StepPlan(const StepPlanOptions& options) : options_(options) {
  check(options);
  updates_per_epoch_ = divide_up(options.num_batches, options.accumulation);
  if (options.resumed) {
    num_done_ = options.resumed->step;
    updates_left_ = divide_up(options.resumed->num_batches_left, options.accumulation);
    next_epoch_ = options.resumed->position.epoch + 1;
    is_regrouped_ = options.resumed->is_regrouped || !continues_groups(options, updates_per_epoch_);
  }
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
  total_steps_ = total_after_resuming(static_cast<std::int64_t>(total));
  num_epochs_ = static_cast<std::int64_t>(std::ceil(options.num_train_epochs));
}

// `total`: of a new run.
std::int64_t StepPlan::total_after_resuming(std::int64_t total) const {
  if (!options_.resumed) return total;
  if (!is_regrouped_) return num_done_ + updates_left_ + total - next_epoch_ * updates_per_epoch_;
  // Every group counts, in this epoch up to the run's end, and after it.
  const auto batches_of = [&](double epochs) {
    return static_cast<std::int64_t>(std::ceil(epochs * static_cast<double>(options_.num_batches) - 1e-9));
  };
  const double after = options_.num_train_epochs - static_cast<double>(next_epoch_);
  if (after < 0) {
    const std::int64_t done = options_.num_batches - options_.resumed->num_batches_left;
    const std::int64_t left = batches_of(1 + after) - done;
    return num_done_ + (left < 0 ? left : divide_up(left, options_.accumulation));
  }
  return num_done_ + updates_left_ + static_cast<std::int64_t>(after) * updates_per_epoch_ +
         divide_up(batches_of(after - std::floor(after)), options_.accumulation);
}

Update StepPlan::update(std::int64_t step) const {
  if (step <= num_done_ || step > total_steps_) {
    throw Error(fmt::format("update {} of a run that has updates {} to {}", step, num_done_ + 1, total_steps_));
  }
  Update update;
  update.step = step;
  std::int64_t group = step - num_done_ - 1, num_batches = options_.num_batches;
  if (group < updates_left_) {
    update.epoch = options_.resumed->position.epoch;
    update.num_taken = options_.resumed->position.num_taken;
    num_batches = options_.resumed->num_batches_left;
  } else {
    group -= updates_left_;
    update.epoch = next_epoch_ + group / updates_per_epoch_;
    group %= updates_per_epoch_;
  }
  update.first_batch = group * options_.accumulation;
  update.num_batches = std::min(options_.accumulation, num_batches - update.first_batch);
  const std::int64_t batches_done = update.first_batch + update.num_batches;
  update.ends_epoch = batches_done == num_batches;
  update.epoch_after =
      static_cast<double>(update.epoch) + static_cast<double>(options_.num_batches - num_batches + batches_done) /
                                              static_cast<double>(options_.num_batches);
  update.position_after = {update.epoch, update.num_taken + batches_done * options_.rows_per_batch};
  if (update.ends_epoch) update.position_after = {update.epoch + 1, 0};
  update.ends_run = step == total_steps_;
  return update;
}

double StepPlan::train_samples(std::int64_t num_rows, std::int64_t batch_of_update) const {
  if (options_.max_steps > 0) return static_cast<double>(options_.max_steps) * static_cast<double>(batch_of_update);
  return static_cast<double>(num_rows) * options_.num_train_epochs;
}

std::string row_order(const TrainSettings& settings) {
  const DataSettings& data = settings.data;
  return fmt::format(
      "{}{}", data.shuffle ? fmt::format("shuffled by --data_seed {}", settings.loop.data_seed) : "as in the file",
      data.subset_seed ? fmt::format(", chosen by --subset_seed {}", *data.subset_seed) : "");
}

ScheduleOptions schedule_options(const StepPlan& plan, const TrainSettings& settings) {
  ScheduleOptions options = settings.schedule;
  options.learning_rate = settings.optimizer.learning_rate;
  options.total_steps = plan.total_steps();
  return options;
}

StepPlan plan_steps(const TrainTask& task, const TrainSettings& settings, int num_ranks,
                    const std::optional<RunState>& resumed) {
  const LoopSettings& loop = settings.loop;
  std::optional<ResumedPlan> start;
  if (resumed && resumed->progress.step > 0 && has_position_in(*resumed, task.num_rows())) {
    const DataPosition& position = *resumed->progress.position;
    start = {resumed->progress.step, position, task.num_batches_after(position.num_taken), resumed->shape.is_regrouped};
  }
  const StepPlan plan({.num_batches = task.num_batches(),
                       .rows_per_batch = loop.batch_size * num_ranks,
                       .accumulation = loop.accumulation,
                       .num_train_epochs = loop.num_epochs,
                       .max_steps = loop.max_steps > 0 ? loop.max_steps : -1,
                       .short_group = loop.short_group,
                       .resumed = start});
  check_total_steps(settings, plan.total_steps());
  Schedule(schedule_options(plan, settings));
  return plan;
}

void check_resumable(const RunProgress& progress, const StepPlan& plan) {
  if (progress.step <= plan.total_steps()) return;
  throw UsageError(
      fmt::format("the checkpoint is at step {}, but this run has only {} steps: give more by --max_steps or "
                  "--num_train_epochs, or resume from an earlier one",
                  progress.step, plan.total_steps()));
}

void warn_of_differences(const RunState& resumed, const RunShape& now) {
  const RunProgress& progress = resumed.progress;
  const RunShape& before = resumed.shape;
  const auto warn = [](const char* what, std::int64_t then, std::int64_t here) {
    if (then != 0 && then != here) {
      log_warn("the resumed run had {} {}, this one has {}: some rows may be used twice, others not at all", then, what,
               here);
    }
  };
  warn("training rows", before.num_rows, now.num_rows);
  if (!has_position_in(resumed, now.num_rows)) warn("rows per update", before.rows_of_update, now.rows_of_update);
  const bool is_within_epoch = progress.position ? progress.position->num_taken > 0 : progress.step > 0;
  if (is_within_epoch && !before.row_order.empty() && before.row_order != now.row_order) {
    log_warn("the resumed run took its rows {}, this one {}: in this epoch some may be used twice, others not at all",
             before.row_order, now.row_order);
  }
  if (before.total_steps != 0 && before.total_steps != now.total_steps) {  // 0: another program's, not known
    log_warn("the resumed run had {} steps, this one has {}", before.total_steps, now.total_steps);
  }
}

}  // namespace tessera
