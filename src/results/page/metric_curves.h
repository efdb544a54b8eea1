// The curves in a run's metrics: every logged value with the step, time and epoch of its log. (no torch)
#pragma once

#include <string>
#include <vector>

#include "record/run_record.h"
#include "results/page/plot.h"

namespace tessera {

enum class CurveX { kStep, kSeconds, kEpoch };

class MetricCurves {
 public:
  // The run must outlive it.
  explicit MetricCurves(const RunRecord& run);

  // Empty where the run never logged it.
  std::vector<Point> curve(const std::string& metric, CurveX x) const;
  double seconds() const { return seconds_; }                          // of the last log, since the run's begin
  const std::vector<Mark>& epoch_ends() const { return epoch_ends_; }  // by seconds

 private:
  double seconds_of(const LogRecord& record) const;  // since the run's begin; nan: not known

  const RunRecord& run_;
  double begin_ = 0, seconds_ = 0;
  std::vector<Mark> epoch_ends_;
};

}  // namespace tessera
