#include "train/meters.h"

namespace tessera {

void LossMeter::add(double update_loss) {
  since_log_ += update_loss;
  total_ += update_loss;
  ++num_since_log_;
  ++num_updates_;
}

std::optional<double> LossMeter::take_mean() {
  if (num_since_log_ == 0) return std::nullopt;
  const double mean = since_log_ / static_cast<double>(num_since_log_);
  since_log_ = 0;
  num_since_log_ = 0;
  return mean;
}

double LossMeter::run_mean() const {
  return num_updates_ == 0 ? 0 : total_ / static_cast<double>(num_updates_);
}

void SpeedMeter::resume_at(std::int64_t step, double now) {
  last_step_ = step;
  last_time_ = now;
}

LogRecord SpeedMeter::at_log(std::int64_t step, double now) {
  const double seconds = now - last_time_;
  const std::int64_t num_steps = step - last_step_;
  if (num_steps <= 0 || seconds <= 0) return {};
  resume_at(step, now);
  const double rate = static_cast<double>(num_steps) / seconds;
  num_steps_ += num_steps;
  seconds_ += seconds;
  return {{"train/steps_per_second", rate},
          {"train/samples_per_second", rate * static_cast<double>(samples_per_step_)}};
}

LogRecord SpeedMeter::summary() const {
  if (num_steps_ == 0) return {};
  const double mean = static_cast<double>(num_steps_) / seconds_;
  return {{"train/steps_per_second_mean", mean},
          {"train/samples_per_second_mean", mean * static_cast<double>(samples_per_step_)}};
}

}  // namespace tessera
