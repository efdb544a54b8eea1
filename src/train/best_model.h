// Which evaluation was the best, and when to stop for want of a better one.
//
// For each evaluation in turn: EarlyStopping::should_stop() first, which compares with the best before it, then
// BestModel::add(): the order and the rules are Hugging Face's. Both travel in a checkpoint (run_state.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/log_record.h"

namespace tessera {

class BestModel {
 public:
  // 'f1' means eval_f1. Without `greater_is_better` a metric whose name ends in 'loss' is better when it is less.
  explicit BestModel(const std::string& metric = "loss", std::optional<bool> greater_is_better = std::nullopt);

  const std::string& metric() const { return metric_; }
  bool greater_is_better() const { return greater_is_better_; }

  // The metric of an evaluation. Throws UsageError with the metrics that there are, where it is not among them.
  double value_in(const LogRecord& evaluation) const;
  // A value that is no number is never better.
  bool is_better(double value, double than) const { return greater_is_better_ ? value > than : value < than; }

  // Whether this is the best yet.
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
  // Stops after `patience` evaluations in a row that were not better than the best by more than `threshold`.
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
