// How many updates a run has, which micro-batches form each, and the epoch reached after it.
//
// An epoch's micro-batches are grouped by `accumulation`; the last group of an epoch may be short and is still an
// update. The numbers are those of Hugging Face's Trainer for the same arguments.
//
// A resumed run goes on at the row where it stopped, also with other ranks, batches or accumulation: what is left of
// that epoch forms new groups, and the epochs after it are as those of a new run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "settings/train_settings.h"
#include "train/run_state.h"
#include "train/schedule.h"

namespace tessera {

class TrainTask;

struct ResumedPlan {
  std::int64_t step = 0;  // updates done
  DataPosition position;
  std::int64_t num_batches_left = 0;  // of that epoch, per rank
  bool is_regrouped = false;          // it was resumed before with other groups
};

struct StepPlanOptions {
  std::int64_t num_batches = 0;     // per epoch and rank
  std::int64_t rows_per_batch = 1;  // over all ranks
  std::int64_t accumulation = 1;
  double num_train_epochs = 3;
  std::int64_t max_steps = -1;  // above 0: overrides num_train_epochs
  ShortGroup short_group = ShortGroup::kNotCounted;
  std::optional<ResumedPlan> resumed = std::nullopt;
};

struct Update {
  std::int64_t step = 0;         // the first is 1
  std::int64_t epoch = 0;        // the first is 0
  std::int64_t num_taken = 0;    // rows of the epoch before its batch 0: above 0 where a run resumed within it
  std::int64_t first_batch = 0;  // of those from there
  std::int64_t num_batches = 0;  // at most the accumulation
  double epoch_after = 0;        // in epochs, e.g. 2.928
  DataPosition position_after;
  bool ends_epoch = false;
  bool ends_run = false;
};

class StepPlan {
 public:
  // Throws UsageError for an empty data set and for numbers that do not make a run.
  explicit StepPlan(const StepPlanOptions& options);

  std::int64_t updates_per_epoch() const { return updates_per_epoch_; }  // including the short group
  std::int64_t total_steps() const { return total_steps_; }  // below the updates done: the run ends before its position
  // Whether the run had other groups before: it then counts every group, also short ones, so that nothing is left out.
  bool is_regrouped() const { return is_regrouped_; }
  // What transformers announces as 'Num Epochs'. The last one may end early, or never start.
  std::int64_t num_epochs() const { return num_epochs_; }

  Update update(std::int64_t step) const;  // 1 to total_steps(); after those that a resumed run has done

  // The samples behind the trainer's speed: rows x epochs, or steps x the batch over all ranks and micro-steps.
  double train_samples(std::int64_t num_rows, std::int64_t batch_of_update) const;

 private:
  std::int64_t total_after_resuming(std::int64_t total) const;

  StepPlanOptions options_;
  std::int64_t updates_per_epoch_ = 0, num_epochs_ = 0, total_steps_ = 0;
  // Of a resumed run: updates done, those left in its epoch, and the first epoch after it.
  std::int64_t num_done_ = 0, updates_left_ = 0, next_epoch_ = 0;
  bool is_regrouped_ = false;
};

// From a run's task, its settings and where it resumes. Throws UsageError if they do not fit the schedule.
StepPlan plan_steps(const TrainTask& task, const TrainSettings& settings, int num_ranks,
                    const std::optional<RunState>& resumed = std::nullopt);
// What decides about the order of the rows, in words.
std::string row_order(const TrainSettings& settings);
ScheduleOptions schedule_options(const StepPlan& plan, const TrainSettings& settings);

// Throws UsageError if the run is shorter than what it has already done.
void check_resumable(const RunProgress& progress, const StepPlan& plan);
// Where the row is not known, the steps tell it: with other numbers, other rows come next.
void warn_of_differences(const RunState& before, const RunShape& now);

}  // namespace tessera
