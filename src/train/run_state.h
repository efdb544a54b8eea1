// The state of a run apart from tensors: what a checkpoint's trainer_state.json holds (state/run_state_file.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/log_record.h"

namespace tessera {

// Which rows come next: those of an epoch's order after the first `num_taken`, by all ranks together.
struct DataPosition {
  std::int64_t epoch = 0, num_taken = 0;

  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

// How far a run has come. Saved, and restored whole.
struct RunProgress {
  std::int64_t step = 0;  // updates done
  double epoch = 0;
  std::optional<DataPosition> position;  // of the row that comes next; none: as the steps tell
  std::int64_t num_advanced = 0;         // of the schedule: fewer than steps if fp16 skipped some
  double total_loss = 0;                 // sum of the updates' losses
  std::int64_t num_losses = 0;           // how many: fewer than steps if another program forgot some
  std::int64_t num_tokens_seen = 0;
  std::vector<LogRecord> history;  // each log line, with its 'step'

  std::optional<double> best_value;
  std::optional<std::int64_t> best_step;
  std::string best_checkpoint;  // its folder; empty if there is none
  std::int64_t evaluations_without_gain = 0;
  std::vector<std::int64_t> checkpoints;  // steps of this run's checkpoints in the folder, including this one
};

// What a run's settings and data make of it. Saved, so that a resumed run can say what has changed; never restored: a
// resumed run has its own.
struct RunShape {
  double started = 0;  // when the process that wrote it started, in seconds since 1970
  std::int64_t total_steps = 0;
  std::int64_t num_train_epochs = 0;
  double logging_steps = 500, eval_steps = 500, save_steps = 500;  // whole, or a fraction of the run
  std::int64_t train_batch_size = 0;                               // per rank and micro-step
  std::optional<std::int64_t> early_stopping_patience;
  double early_stopping_threshold = 0;
  std::int64_t num_rows = 0, rows_of_update = 0;  // of the training data; per update over all ranks; 0: unknown
  bool is_regrouped = false;                      // it was resumed with another number of rows per update
  std::string row_order;                          // what decides about the order of rows; empty: unknown
};

struct RunState {
  RunProgress progress;
  RunShape shape;
};

}  // namespace tessera
