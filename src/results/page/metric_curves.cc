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
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

MetricCurves::MetricCurves(const RunRecord& run) : run_(run) {
  begin_ = seconds_of_utc(run.started).value_or(std::numeric_limits<double>::infinity());
  // A resumed run also has the metrics of the run before it.
  if (!run.metrics.empty()) begin_ = std::min(begin_, run.metrics.front().number("time").value_or(begin_));
  double epochs_ended = 0;
  for (const LogRecord& record : run.metrics) {
    const double seconds = seconds_of(record), epoch = record.number("epoch").value_or(kUnknown);
    if (!std::isfinite(seconds)) continue;
    seconds_ = std::max(seconds_, seconds);
    for (; std::floor(epoch + 1e-9) > epochs_ended && epoch_ends_.size() <= kMostMarks; ++epochs_ended) {
      epoch_ends_.push_back({seconds, fmt::format("end of epoch {}", epochs_ended + 1)});
    }
  }
  if (epoch_ends_.size() > kMostMarks) epoch_ends_.clear();
}

// To the millisecond: a difference of seconds since 1970 has no more digits.
double MetricCurves::seconds_of(const LogRecord& record) const {
  return std::round(1e3 * (record.number("time").value_or(kUnknown) - begin_)) / 1e3;
}

std::vector<Point> MetricCurves::curve(const std::string& metric, CurveX x) const {
  std::vector<Point> points;
  for (const LogRecord& record : run_.metrics) {
    const std::optional<double> value = record.number(metric);
    if (!value) continue;
    // Epochs are counted: logs without one are the next in line.
    const double at = x == CurveX::kStep      ? record.number("step").value_or(kUnknown)
                      : x == CurveX::kSeconds ? seconds_of(record)
                                              : record.number("epoch").value_or(static_cast<double>(points.size() + 1));
    points.push_back({at, *value});
  }
  return points;
}

}  // namespace tessera
