#include "results/page/metric_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "record/run_record.h"

namespace tessera {
namespace {

constexpr std::size_t kMostMarks = 40;  // more would hide the curves

std::optional<double> number_of(const LogValue& value) {
  if (const double* real = std::get_if<double>(&value)) return *real;
  if (const std::int64_t* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::nullopt;
}

}  // namespace

MetricCurves::MetricCurves(const RunRecord& run) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double begin = seconds_of_utc(run.started).value_or(std::numeric_limits<double>::infinity());
  // A resumed run also has the metrics of the run before it.
  if (!run.metrics.empty()) begin = std::min(begin, run.metrics.front().number("time").value_or(begin));
  double epochs_ended = 0;
  for (const LogRecord& record : run.metrics) {
    // To the millisecond: a difference of seconds since 1970 has no more digits.
    const double seconds = std::round(1e3 * (record.number("time").value_or(kNone) - begin)) / 1e3;
    Sample at{record.number("step").value_or(kNone), seconds, record.number("epoch").value_or(kNone), 0};
    if (std::isfinite(at.seconds)) seconds_ = std::max(seconds_, at.seconds);
    for (; std::floor(at.epoch + 1e-9) > epochs_ended && std::isfinite(at.seconds) && epoch_ends_.size() <= kMostMarks;
         ++epochs_ended) {
      epoch_ends_.push_back({at.seconds, fmt::format("end of epoch {}", epochs_ended + 1)});
    }
    for (const auto& [name, value] : record.entries()) {
      if (name == "step" || name == "time" || name == "epoch") continue;
      const std::optional<double> number = number_of(value);
      if (!number) continue;
      at.value = *number;
      samples_[name].push_back(at);
    }
  }
  if (epoch_ends_.size() > kMostMarks) epoch_ends_.clear();
}

std::vector<Point> MetricCurves::curve(const std::string& metric, CurveX x) const {
  std::vector<Point> points;
  const auto found = samples_.find(metric);
  if (found == samples_.end()) return points;
  for (const Sample& sample : found->second) {
    const double at = x == CurveX::kStep ? sample.step : x == CurveX::kSeconds ? sample.seconds : sample.epoch;
    // Epochs are counted: logs without one are the next in line.
    points.push_back(
        {std::isnan(at) && x == CurveX::kEpoch ? static_cast<double>(points.size() + 1) : at, sample.value});
  }
  return points;
}

}  // namespace tessera
