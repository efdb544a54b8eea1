#include "listeners/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "core/log.h"
#include "core/log_record.h"
#include "core/output.h"

namespace tessera {

namespace {

constexpr int kUsualColumns = 80;

int columns_of_terminal(int descriptor) {
  if (::isatty(descriptor) == 0) return 0;
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

}  // namespace

Console::Console(Write out, WriteProgress progress, int num_columns)
    : out_(std::move(out)), progress_(std::move(progress)), num_columns_(num_columns) {}

Console Console::of_process() {
  const auto show = [](std::string_view text, std::string_view standing) {
    if (standing.empty()) return write_progress(text, standing);
    write_progress(coloured(text, Colour::kGreen), coloured(standing, Colour::kGreen));
  };
  return Console([](std::string_view text) { print_out(text); }, show, columns_of_terminal(STDERR_FILENO));
}

void Console::print_line(std::string_view line) {
  const std::string bar = shown_;
  clear_progress();
  try {
    out_(std::string(line) + "\n");
  } catch (const OutputError& error) {
    if (failure_.empty()) log_warn("{} (the run continues without these lines)", error.what());
    failure_ = error.what();
  }
  if (!bar.empty()) show_progress(bar);
}

void Console::show_progress(const std::string& text) {
  if (!is_terminal()) {
    progress_(text + "\n", "");
    return;
  }
  progress_(std::string(kClearLine) + text, text);
  shown_ = text;
}

void Console::keep_progress() {
  if (shown_.empty()) return;
  progress_("\n", "");
  shown_.clear();
}

void Console::clear_progress() {
  if (shown_.empty()) return;
  progress_(kClearLine, "");
  shown_.clear();
}

void ProgressShower::on_train_begin(const RunMoment& at) {
  begun_ = last_shown_ = last_step_time_ = end_of_training_ = at.wall_seconds;
  first_step_ = last_step_ = at.step;
  if (console_.is_terminal()) show(at, std::nullopt);
}

void ProgressShower::on_step_end(const RunMoment& at) {
  const double seconds = at.wall_seconds - last_step_time_;
  rate_.add(static_cast<double>(at.step - last_step_), seconds);
  seconds_of_steps_ += seconds;
  last_step_ = at.step;
  last_step_time_ = end_of_training_ = at.wall_seconds;
  if (at.wall_seconds - last_shown_ < seconds_between_) return;
  last_shown_ = at.wall_seconds;
  show(at, console_.is_terminal() ? rate_.rate() : mean_rate());
}

void ProgressShower::on_log(const RunMoment& at, const LogRecord& record) {
  end_of_training_ = at.wall_seconds;
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
  last_step_time_ = end_of_training_ = at.wall_seconds;
  if (console_.is_terminal()) show(at, rate_.rate());
}

// Told after the answers, which are not training.
void ProgressShower::on_train_end(const RunMoment& at, RunEnd, const std::string&) {
  show({at.step, at.total_steps, at.epoch, end_of_training_}, mean_rate());
  console_.keep_progress();
}

std::optional<double> ProgressShower::mean_rate() const {
  if (seconds_of_steps_ <= 0) return std::nullopt;
  return static_cast<double>(last_step_ - first_step_) / seconds_of_steps_;
}

void ProgressShower::show(const RunMoment& at, std::optional<double> rate) {
  const Progress progress{at.step, at.total_steps, at.wall_seconds - begun_, rate, first_step_};
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
