// What a run logs: means of losses since the last log and over the run, speed as the speed callback defines it, and the
// records made of them.
#pragma once

#include <cstdint>
#include <optional>

#include "core/log_record.h"

namespace tessera {

// Losses per update (each the mean over the counted tokens of all ranks). The run's sum is kept across a resume.
class LossMeter {
 public:
  LossMeter() = default;
  LossMeter(double total, std::int64_t num_updates) : total_(total), num_updates_(num_updates) {}

  void add(double update_loss);
  // The mean of the updates since the last call, or nothing if there were none.
  std::optional<double> take_mean();
  double run_mean() const;  // transformers' train_loss; 0 before the first update

  double total() const { return total_; }
  std::int64_t num_updates() const { return num_updates_; }

 private:
  double since_log_ = 0, total_ = 0;
  std::int64_t num_since_log_ = 0, num_updates_ = 0;
};

// Steps between logs / seconds between logs; over the run: all these steps / all these seconds. Times batch,
// accumulation and ranks for samples. The caller passes the time in seconds, so a test needs no clock.
class SpeedMeter {
 public:
  SpeedMeter(std::int64_t samples_per_step, double now) : samples_per_step_(samples_per_step), last_time_(now) {}

  void resume_at(std::int64_t step, double now);
  // Call it at each log. Returns the two rates since the last log; nothing if no time or no step has passed.
  LogRecord at_log(std::int64_t step, double now);
  // train/steps_per_second_mean and train/samples_per_second_mean; empty before the first interval.
  LogRecord summary() const;

 private:
  std::int64_t samples_per_step_;
  std::int64_t last_step_ = 0;
  double last_time_;
  std::int64_t num_steps_ = 0;  // of all intervals
  double seconds_ = 0;
};

// The records of a trainer. Times and rates are rounded as transformers rounds them.
LogRecord train_log(double mean_loss, std::optional<double> grad_norm, double learning_rate, double epoch);
// Without an epoch if nothing is being trained.
LogRecord evaluation_log(const LogRecord& metrics, double seconds, std::int64_t num_samples, std::int64_t num_steps,
                         std::optional<double> epoch = {});
LogRecord train_summary(double seconds, double num_samples, std::int64_t num_steps, double train_loss, double epoch);

}  // namespace tessera
