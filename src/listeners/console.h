// A run's console: records on standard output, progress on standard error. On a terminal they share the screen, and
// with the log's lines (core/log.h) a bar makes room for either.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "listeners/console_text.h"
#include "parallel/step_clock.h"
#include "train/listener.h"

namespace tessera {

class Console {
 public:
  using Write = std::function<void(std::string_view)>;
  using WriteProgress = std::function<void(std::string_view text, std::string_view standing)>;  // as write_progress()

  // `num_columns`: the width of the terminal that shows the progress; 0 if it is a file.
  Console(Write out, WriteProgress progress, int num_columns);
  ~Console() { keep_progress(); }  // a run that fails leaves its bar
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  static Console of_process();

  bool is_terminal() const { return num_columns_ > 0; }
  int num_columns() const { return num_columns_; }

  // Prints a whole line; a visible bar reappears below it. If a line cannot be written, one warning says so and the run
  // continues: the console's owner checks failure() at the end.
  void print_line(std::string_view line);
  const std::string& failure() const { return failure_; }  // why a line was lost; empty: none was
  // On a terminal: replaces the previous bar. In a file: a line of its own.
  void show_progress(const std::string& text);
  // The bar stays on the screen; what follows starts on the next line.
  void keep_progress();
  void clear_progress();

 private:
  Write out_;
  WriteProgress progress_;
  int num_columns_;
  std::string shown_, failure_;
};

// What a run shows while it trains: log lines, and a progress bar (on a terminal) or occasional lines (in a file). The
// console must outlive them.

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

  void show(const RunMoment& at, std::optional<double> rate);
  std::optional<double> mean_rate() const;

  Console& console_;
  double seconds_between_;
  double begun_ = 0, last_shown_ = 0, last_step_time_ = 0;
  double seconds_of_steps_ = 0;  // without evaluations
  double end_of_training_ = 0;   // so far: what follows the last log, such as answers, is not training
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
