#include "train/plan_steps.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/log.h"
#include "settings/load.h"

namespace tessera {
namespace {

bool has_position_in(const RunState& before, std::int64_t num_rows) {
  return before.position && before.num_rows == num_rows;
}

}  // namespace

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
  if (resumed && resumed->step > 0 && has_position_in(*resumed, task.num_rows())) {
    start = {resumed->step, *resumed->position, task.num_batches_after(resumed->position->num_taken),
             resumed->is_regrouped};
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

void check_resumable(const RunState& state, const StepPlan& plan) {
  if (state.step <= plan.total_steps()) return;
  throw UsageError(
      fmt::format("the checkpoint is at step {}, but this run has only {} steps: give more by --max_steps or "
                  "--num_train_epochs, or resume from an earlier one",
                  state.step, plan.total_steps()));
}

void warn_of_differences(const RunState& before, const RunState& now) {
  const auto warn = [](const char* what, std::int64_t then, std::int64_t here) {
    if (then != 0 && then != here) {
      log_warn("the resumed run had {} {}, this one has {}: some rows may be used twice, others not at all", then, what,
               here);
    }
  };
  warn("training rows", before.num_rows, now.num_rows);
  if (!has_position_in(before, now.num_rows)) warn("rows per update", before.rows_of_update, now.rows_of_update);
  const bool is_within_epoch = before.position ? before.position->num_taken > 0 : before.step > 0;
  if (is_within_epoch && !before.row_order.empty() && before.row_order != now.row_order) {
    log_warn("the resumed run took its rows {}, this one {}: in this epoch some may be used twice, others not at all",
             before.row_order, now.row_order);
  }
  if (before.total_steps != 0 && before.total_steps != now.total_steps) {  // 0: another program's, not known
    log_warn("the resumed run had {} steps, this one has {}", before.total_steps, now.total_steps);
  }
}

}  // namespace tessera
