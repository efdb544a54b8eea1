// How many updates a run has, which micro-batches form each, and the epoch reached after it.
//
// An epoch's micro-batches are grouped by `accumulation`; the last group of an epoch may be short and is still an
// update. The numbers are those of Hugging Face's Trainer for the same arguments. Everything follows from the number of
// the update alone, so a resumed run needs only that number.
#pragma once

#include <cstdint>

#include "settings/train_settings.h"

namespace tessera {

struct StepPlanOptions {
  std::int64_t num_batches = 0;  // per epoch and rank
  std::int64_t accumulation = 1;
  double num_train_epochs = 3;
  std::int64_t max_steps = -1;  // above 0: overrides num_train_epochs
  ShortGroup short_group = ShortGroup::kNotCounted;
};

struct Update {
  std::int64_t step = 0;         // the first is 1
  std::int64_t epoch = 0;        // the first is 0
  std::int64_t first_batch = 0;  // within the epoch
  std::int64_t num_batches = 0;  // at most the accumulation
  double epoch_after = 0;        // in epochs, e.g. 2.928
  bool ends_epoch = false;
  bool ends_run = false;
};

class StepPlan {
 public:
  // Throws UsageError for an empty data set and for numbers that do not make a run.
  explicit StepPlan(const StepPlanOptions& options);

  std::int64_t updates_per_epoch() const { return updates_per_epoch_; }  // including the short group
  std::int64_t total_steps() const { return total_steps_; }
  // What transformers announces as 'Num Epochs'. The last one may end early, or never start.
  std::int64_t num_epochs() const { return num_epochs_; }

  Update update(std::int64_t step) const;  // 1 to total_steps()

  // The samples behind the trainer's speed: rows x epochs, or steps x the batch over all ranks and micro-steps.
  double train_samples(std::int64_t num_rows, std::int64_t batch_of_update) const;

 private:
  StepPlanOptions options_;
  std::int64_t updates_per_epoch_ = 0, num_epochs_ = 0, total_steps_ = 0;
};

}  // namespace tessera
