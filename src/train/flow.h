// What a run does between updates: when it logs, evaluates and saves, which evaluation was the best, and when it stops
// because evaluations no longer improve.
//
// After every update call after_step() and do what it says, in the order log, evaluate, save. When an epoch ends, or
// the run stops within one, call after_epoch() in the same way. Rules and names are Hugging Face's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/log_record.h"
#include "settings/run_schedule.h"

namespace tessera {

struct Actions {
  bool log = false;
  bool evaluate = false;
  bool save = false;
};

// Runs of fewer than 5,000 updates log ten times, unless somebody chose logging_steps: with transformers' 500 a short
// one would show no loss at all.
FlowOptions with_short_runs_logged(FlowOptions options, std::int64_t total_steps);

class Flow {
 public:
  // `first_step`: the updates that a resumed run has already done. Throws UsageError for invalid intervals.
  Flow(const FlowOptions& options, std::int64_t total_steps, std::int64_t first_step = 0);

  Actions after_step(std::int64_t step);
  Actions after_epoch(std::int64_t step, double epoch);

 private:
  bool log_once(bool due, std::int64_t step);

  FlowOptions options_;
  std::int64_t total_steps_;
  std::int64_t logging_steps_, eval_steps_, save_steps_;
  std::int64_t last_logged_;  // no update is logged twice
};

// For each evaluation, call EarlyStopping::should_stop() first, which compares with the previous best, then
// BestModel::add(). The order and the rules are Hugging Face's. A checkpoint keeps the state of both (run_state.h).

class BestModel {
 public:
  // 'f1' means eval_f1. Without `greater_is_better`, lower is better for a metric whose name ends in 'loss'.
  explicit BestModel(const std::string& metric = "loss", std::optional<bool> greater_is_better = std::nullopt);

  const std::string& metric() const { return metric_; }
  bool greater_is_better() const { return greater_is_better_; }

  // The metric of an evaluation. Throws UsageError listing the available metrics if it is not among them.
  double value_in(const LogRecord& evaluation) const;
  // NaN is never better.
  bool is_better(double value, double than) const { return greater_is_better_ ? value > than : value < than; }

  // Whether this is the best so far.
  bool add(double value, std::int64_t step);

  std::optional<double> best_value() const { return best_value_; }
  std::optional<std::int64_t> best_step() const { return best_step_; }
  void restore(std::optional<double> best_value, std::optional<std::int64_t> best_step);

 private:
  std::string metric_;
  bool greater_is_better_;
  std::optional<double> best_value_;
  std::optional<std::int64_t> best_step_;
};

class EarlyStopping {
 public:
  // Stops after `patience` evaluations in a row that did not improve on the best by more than `threshold`.
  explicit EarlyStopping(std::int64_t patience, double threshold = 0);

  bool should_stop(double value, const BestModel& best);

  std::int64_t num_without_gain() const { return num_without_gain_; }
  void restore(std::int64_t num_without_gain) { num_without_gain_ = num_without_gain; }

 private:
  std::int64_t patience_;
  double threshold_;
  std::int64_t num_without_gain_ = 0;
};

}  // namespace tessera
