// The curves in a run's metrics: every logged value with the step, time and epoch of its log. (no torch)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "record/run_record.h"
#include "results/page/plot.h"

namespace tessera {

enum class CurveX { kStep, kSeconds, kEpoch };

class MetricCurves {
 public:
  explicit MetricCurves(const RunRecord& run);

  // Empty where the run never logged it.
  std::vector<Point> curve(const std::string& metric, CurveX x) const;
  double seconds() const { return seconds_; }                          // of the last log, since the run's begin
  const std::vector<Mark>& epoch_ends() const { return epoch_ends_; }  // by seconds

 private:
  struct Sample {
    double step, seconds, epoch, value;
  };
  std::map<std::string, std::vector<Sample>> samples_;
  std::vector<Mark> epoch_ends_;
  double seconds_ = 0;
};

}  // namespace tessera
