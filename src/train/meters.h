// Means that a run logs: losses since the last log and over the run, speed by the speed callback's definition.
#pragma once

#include <cstdint>
#include <optional>

#include "core/log_record.h"

namespace tessera {

// Losses of updates (each the mean over its counted tokens of all ranks). The whole run's sum survives a resume.
class LossMeter {
 public:
  LossMeter() = default;
  LossMeter(double total, std::int64_t num_updates) : total_(total), num_updates_(num_updates) {}

  void add(double update_loss);
  // The mean of the updates since the last call, or nothing where there was none.
  std::optional<double> take_mean();
  double run_mean() const;  // transformers' train_loss; 0 before the first update

  double total() const { return total_; }
  std::int64_t num_updates() const { return num_updates_; }

 private:
  double since_log_ = 0, total_ = 0;
  std::int64_t num_since_log_ = 0, num_updates_ = 0;
};

// (steps between logs / seconds between logs), meant over the logs; x batch x accumulation x ranks for samples. The
// time is the caller's clock in seconds, so that a test needs none.
class SpeedMeter {
 public:
  SpeedMeter(std::int64_t samples_per_step, double now) : samples_per_step_(samples_per_step), last_time_(now) {}

  void resume_at(std::int64_t step, double now);
  // At each log. The two rates between this log and the last; nothing where no time or no step lies between.
  LogRecord at_log(std::int64_t step, double now);
  // train/steps_per_second_mean and train/samples_per_second_mean; empty before the first interval.
  LogRecord summary() const;

 private:
  std::int64_t samples_per_step_;
  std::int64_t last_step_ = 0;
  double last_time_;
  double sum_ = 0;
  std::int64_t num_intervals_ = 0;
};

}  // namespace tessera
