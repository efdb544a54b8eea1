#include "train/flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

// Rounded up: 0.1 of 93 updates is every 10.
std::int64_t interval_of(const char* setting, double steps, std::int64_t total_steps) {
  const bool whole = steps >= 1 && steps == std::floor(steps) && steps < 1e15;
  if (!whole && !(steps > 0 && steps < 1)) {
    throw UsageError(fmt::format(
        "{} is {}: expected a whole number from 1 on, or a fraction of the run between 0 and 1", setting, steps));
  }
  return static_cast<std::int64_t>(whole ? steps : std::ceil(static_cast<double>(total_steps) * steps));
}

}  // namespace

FlowOptions with_short_runs_logged(FlowOptions options, std::int64_t total_steps) {
  constexpr std::int64_t kLogs = 10;
  if (!options.logs_short_runs) return options;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, total_steps / kLogs));
  options.eval_steps = options.eval_steps.value_or(options.logging_steps);
  options.logging_steps = std::min(options.logging_steps, steps);
  return options;
}

Flow::Flow(const FlowOptions& options, std::int64_t total_steps, std::int64_t first_step)
    : options_(options), total_steps_(total_steps), last_logged_(first_step) {
  const auto of = [&](Interval interval, const char* setting, double steps) {
    return interval == Interval::kSteps ? interval_of(setting, steps, total_steps) : 1;
  };
  logging_steps_ = of(options.logging, "logging_steps", options.logging_steps);
  eval_steps_ = of(options.evaluation, "eval_steps", options.eval_steps.value_or(options.logging_steps));
  save_steps_ = of(options.saving, "save_steps", options.save_steps);
}

Actions Flow::after_step(std::int64_t step) {
  const auto due = [&](Interval interval, std::int64_t steps) {
    return interval == Interval::kSteps && step % steps == 0;
  };
  Actions actions;
  actions.log = log_once((step == 1 && options_.logging_first_step) || due(options_.logging, logging_steps_), step);
  actions.evaluate = due(options_.evaluation, eval_steps_) && options_.eval_delay <= static_cast<double>(step);
  // With saving by steps, the end of the run is always saved.
  const bool at_the_end = options_.saving == Interval::kSteps && step >= total_steps_;
  actions.save = due(options_.saving, save_steps_) || at_the_end;
  return actions;
}

Actions Flow::after_epoch(std::int64_t step, double epoch) {
  Actions actions;
  actions.log = log_once(options_.logging == Interval::kEpoch, step);
  actions.evaluate = options_.evaluation == Interval::kEpoch && options_.eval_delay <= epoch;
  actions.save = options_.saving == Interval::kEpoch;
  return actions;
}

bool Flow::log_once(bool due, std::int64_t step) {
  if (!due || step <= last_logged_) return false;
  last_logged_ = step;
  return true;
}

BestModel::BestModel(const std::string& metric, std::optional<bool> greater_is_better)
    : metric_(metric.starts_with("eval_") ? metric : "eval_" + metric),
      greater_is_better_(greater_is_better.value_or(!metric.ends_with("loss"))) {}

double BestModel::value_in(const LogRecord& evaluation) const {
  if (const std::optional<double> value = evaluation.number(metric_)) return *value;
  std::vector<std::string> names;
  for (const auto& [key, value] : evaluation.entries()) names.push_back(key);
  throw UsageError(fmt::format("metric_for_best_model is {}, which the evaluation does not give: choose one of {}",
                               metric_, join(names, ", ")));
}

bool BestModel::add(double value, std::int64_t step) {
  const double infinity = std::numeric_limits<double>::infinity();
  // As in transformers, even a first value that is NaN sets a 'best' one: the worst possible.
  if (!best_value_) best_value_ = greater_is_better_ ? -infinity : infinity;
  if (!is_better(value, *best_value_)) return false;
  best_value_ = value;
  best_step_ = step;
  return true;
}

void BestModel::restore(std::optional<double> best_value, std::optional<std::int64_t> best_step) {
  best_value_ = best_value;
  best_step_ = best_step;
}

EarlyStopping::EarlyStopping(std::int64_t patience, double threshold) : patience_(patience), threshold_(threshold) {
  if (patience < 1) throw UsageError(fmt::format("early_stopping_patience is {}: expected at least 1", patience));
  if (!(threshold >= 0))
    throw UsageError(fmt::format("early_stopping_threshold is {}: expected at least 0", threshold));
}

bool EarlyStopping::should_stop(double value, const BestModel& best) {
  const std::optional<double> before = best.best_value();
  const bool gains = !before || (best.is_better(value, *before) && std::abs(value - *before) > threshold_);
  num_without_gain_ = gains ? 0 : num_without_gain_ + 1;
  return num_without_gain_ >= patience_;
}

}  // namespace tessera
