#include "train/meters.h"

#include <string>

#include "core/log_record.h"

namespace tessera {

namespace {

// Like transformers, leaves out the rates if no time has passed.
void add_speed(LogRecord& record, const std::string& split, double seconds, double num_samples, double num_steps) {
  record.set(split + "_runtime", python_round(seconds, 4));
  if (seconds == 0) return;
  record.set(split + "_samples_per_second", python_round(num_samples / seconds, 3));
  record.set(split + "_steps_per_second", python_round(num_steps / seconds, 3));
}

}  // namespace

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

LogRecord train_log(double mean_loss, std::optional<double> grad_norm, double learning_rate, double epoch) {
  LogRecord record;
  record.set("loss", python_round(mean_loss, 4));
  if (grad_norm) record.set("grad_norm", *grad_norm);
  record.set("learning_rate", learning_rate);
  record.set("epoch", epoch);
  return record;
}

LogRecord evaluation_log(const LogRecord& metrics, double seconds, std::int64_t num_samples, std::int64_t num_steps,
                         std::optional<double> epoch) {
  LogRecord record;
  for (const auto& [key, value] : metrics.entries()) record.set(key.starts_with("eval_") ? key : "eval_" + key, value);
  add_speed(record, "eval", seconds, static_cast<double>(num_samples), static_cast<double>(num_steps));
  if (epoch) record.set("epoch", *epoch);
  return record;
}

LogRecord train_summary(double seconds, double num_samples, std::int64_t num_steps, double train_loss, double epoch) {
  LogRecord record;
  add_speed(record, "train", seconds, num_samples, static_cast<double>(num_steps));
  record.set("train_loss", train_loss);
  record.set("epoch", epoch);
  return record;
}

}  // namespace tessera
