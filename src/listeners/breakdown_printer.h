// DeepSpeed's wall_clock_breakdown: with each log line, where the time of the steps since the last one went on rank 0.
#pragma once

#include <string>

#include "listeners/console.h"
#include "parallel/step_clock.h"
#include "train/listener.h"

namespace tessera {

class BreakdownPrinter : public TrainListener {
 public:
  // Both must outlive it.
  BreakdownPrinter(Console& console, StepClock& clock) : console_(console), clock_(clock) {}

  std::string name() const override { return "wall clock breakdown"; }
  void on_log(const RunMoment& at, const LogRecord& record) override;

 private:
  Console& console_;
  StepClock& clock_;
};

// "time per step (ms) | data wait: 0.12 | forward: 10.50 | ..."
std::string breakdown_line(const PartSeconds& mean);

}  // namespace tessera
