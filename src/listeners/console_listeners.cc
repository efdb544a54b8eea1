#include "listeners/console_listeners.h"

#include <fmt/format.h>

#include "core/log_record.h"

namespace tessera {

void ProgressShower::on_train_begin(const RunMoment& at) {
  begun_ = last_shown_ = last_step_time_ = at.wall_seconds;
  first_step_ = last_step_ = at.step;
  if (console_.is_terminal()) show(at, false);
}

void ProgressShower::on_step_end(const RunMoment& at) {
  rate_.add(static_cast<double>(at.step - last_step_), at.wall_seconds - last_step_time_);
  last_step_ = at.step;
  last_step_time_ = at.wall_seconds;
  if (at.wall_seconds - last_shown_ < seconds_between_) return;
  last_shown_ = at.wall_seconds;
  show(at, console_.is_terminal());
}

void ProgressShower::on_log(const RunMoment&, const LogRecord& record) {
  if (const auto loss = record.number("loss")) loss_ = "loss=" + python_repr(*loss);
}

void ProgressShower::on_evaluation_step(const RunMoment& at, std::int64_t done, std::int64_t total) {
  if (!evaluating_) evaluation_begun_ = at.wall_seconds;
  evaluating_ = true;
  if (!console_.is_terminal() || at.wall_seconds - last_shown_ < seconds_between_) return;
  last_shown_ = at.wall_seconds;
  const Progress progress{done, total, at.wall_seconds - evaluation_begun_};
  console_.show_progress(format_progress_bar(progress, console_.num_columns(), "evaluation"));
}

// The time of an evaluation does not count as a step's.
void ProgressShower::on_evaluation_end(const RunMoment& at) {
  evaluating_ = false;
  last_step_time_ = at.wall_seconds;
  if (console_.is_terminal()) show(at, true);
}

void ProgressShower::on_train_end(const RunMoment& at, RunEnd, const std::string&) {
  show(at, false);
  console_.keep_progress();
}

void ProgressShower::show(const RunMoment& at, bool smoothed) {
  const Progress progress{at.step, at.total_steps, at.wall_seconds - begun_, smoothed ? rate_.rate() : std::nullopt,
                          first_step_};
  console_.show_progress(console_.is_terminal() ? format_progress_bar(progress, console_.num_columns(), loss_)
                                                : format_progress_line(progress));
}

std::string breakdown_line(const PartSeconds& mean) {
  std::string line = "time per step (ms)";
  for (std::size_t i = 0; i < kNumStepParts; ++i) {
    line += fmt::format(" | {}: {:.2f}", step_part_names()[i], 1000 * mean[i]);
  }
  return line;
}

// Only lines of training have a loss.
void BreakdownPrinter::on_log(const RunMoment&, const LogRecord& record) {
  if (record.find("loss") == nullptr) return;
  const StepClock::Recent recent = clock_.take_recent();
  if (recent.num_steps > 0) console_.print_line(breakdown_line(recent.mean));
}

}  // namespace tessera
