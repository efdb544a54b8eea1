#include "train/best_model.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

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
