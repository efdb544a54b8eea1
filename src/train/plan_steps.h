// The steps of a run, from its task, its settings and where it resumes.
#pragma once

#include <optional>
#include <string>

#include "settings/train_settings.h"
#include "train/run_state.h"
#include "train/schedule.h"
#include "train/step_plan.h"
#include "train/task.h"

namespace tessera {

// Throws UsageError if they do not fit the schedule.
StepPlan plan_steps(const TrainTask& task, const TrainSettings& settings, int num_ranks,
                    const std::optional<RunState>& resumed = std::nullopt);
// What decides about the order of the rows, in words.
std::string row_order(const TrainSettings& settings);
ScheduleOptions schedule_options(const StepPlan& plan, const TrainSettings& settings);

// Throws UsageError if the run is shorter than what it has already done.
void check_resumable(const RunState& state, const StepPlan& plan);
// Where the row is not known, the steps tell it: with other numbers, other rows come next.
void warn_of_differences(const RunState& before, const RunState& now);

}  // namespace tessera
