// What a run shows while it trains: log lines, and a progress bar (on a terminal) or occasional lines (in a file).
//
// The console must outlive them.
#pragma once

#include <optional>
#include <string>

#include "listeners/console.h"
#include "listeners/log_line.h"
#include "listeners/progress_text.h"
#include "parallel/step_clock.h"
#include "train/listener.h"

namespace tessera {

class LogLinePrinter : public TrainListener {
 public:
  explicit LogLinePrinter(Console& console) : console_(console) {}

  std::string name() const override { return "log lines"; }
  void on_log(const RunMoment&, const LogRecord& record) override { console_.print_line(format_log_line(record)); }

 private:
  Console& console_;
};

class ProgressShower : public TrainListener {
 public:
  // In a file: seconds between two lines; one more comes at the end.
  explicit ProgressShower(Console& console, double seconds_between_lines = 30)
      : console_(console), seconds_between_(console.is_terminal() ? kSecondsBetweenBars : seconds_between_lines) {}

  std::string name() const override { return "progress"; }
  void on_train_begin(const RunMoment& at) override;
  void on_step_end(const RunMoment& at) override;
  void on_log(const RunMoment&, const LogRecord& record) override;
  void on_evaluation_step(const RunMoment& at, std::int64_t done, std::int64_t total) override;
  void on_evaluation_end(const RunMoment& at) override;
  void on_train_end(const RunMoment& at, RunEnd, const std::string&) override;

 private:
  static constexpr double kSecondsBetweenBars = 0.1;  // tqdm's

  void show(const RunMoment& at, bool smoothed);

  Console& console_;
  double seconds_between_;
  double begun_ = 0, last_shown_ = 0, last_step_time_ = 0;
  double evaluation_begun_ = 0;
  std::int64_t first_step_ = 0, last_step_ = 0;
  bool evaluating_ = false;
  SmoothedRate rate_;
  std::string loss_;
};

// DeepSpeed's wall_clock_breakdown: with each log line, where the time of the steps since the last one went on rank 0.
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
