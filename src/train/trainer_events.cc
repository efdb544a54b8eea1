// What the trainer does between updates: logs, evaluations, checkpoints.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include "comm/exchange.h"
#include "core/host.h"
#include "model/run_modes.h"
#include "train/meters.h"
#include "train/trainer.h"

namespace tessera {

void Trainer::read_losses() {
  if (unread_losses_.empty()) return;
  const at::Tensor host = at::stack(unread_losses_).cpu();
  const double* first = host.const_data_ptr<double>();
  const std::vector<double> sums = sum_over_ranks(world_, std::vector<double>(first, first + host.numel()));
  for (std::size_t i = 0; i < sums.size(); ++i) losses_.add(sums[i] / unread_counts_[i]);
  unread_losses_.clear();
  unread_counts_.clear();
  progress_.total_loss = losses_.total();
  progress_.num_losses = losses_.num_updates();
}

void Trainer::act(const Actions& actions) {
  if (actions.log) log_losses();
  const bool is_best = actions.evaluate && task_.num_eval_rows() > 0 && evaluate_and_judge();
  if (settings_.flow.saving == Interval::kBest ? is_best : actions.save) save();
}

void Trainer::save() {
  if (checkpointer_ == nullptr) return;
  phase_ = fmt::format("the checkpoint of step {}", progress_.step);
  read_losses();
  step_.engine().finish_updates();
  checkpointer_->save({now(), step_, progress_, shape_});
}

void Trainer::log_losses() {
  read_losses();
  if (const std::optional<double> mean = losses_.take_mean())
    log(train_log(*mean, last_norm_, last_rate_, progress_.epoch));
  const LogRecord speed = speed_.at_log(progress_.step, steady_seconds());
  if (!speed.empty()) listeners_.on_metrics(now(), speed);
}

LogRecord Trainer::evaluate() {
  phase_ = fmt::format("the evaluation after step {}", progress_.step);
  const at::NoGradGuard no_gradients;
  const Evaluating evaluating(task_.model());
  step_.engine().sync_buffers();
  const double begin = steady_seconds();
  TrainTask::Totals totals;
  {
    const auto pass = step_.forward();
    totals = task_.evaluate(step_.engine(), [&](std::int64_t done, std::int64_t total) {
      listeners_.on_evaluation_step(now(), done, total);
    });
  }
  LogRecord metrics = task_.metrics(sum_over_ranks(world_, totals.sums));
  if (more_metrics_) {
    const LogRecord more = more_metrics_();
    for (const auto& [key, value] : more.entries()) metrics.set(key, value);
  }
  listeners_.on_evaluation_end(now());
  const LogRecord record =
      evaluation_log(metrics, steady_seconds() - begin, task_.num_eval_rows(), totals.num_batches, progress_.epoch);
  log(record);
  return record;
}

bool Trainer::evaluate_and_judge() {
  const LogRecord record = evaluate();
  if (!best_) return false;
  const double value = best_->value_in(record);
  if (patience_ && patience_->should_stop(value, *best_)) should_stop_ = true;
  const bool is_best = best_->add(value, progress_.step);
  progress_.best_value = best_->best_value();
  progress_.best_step = best_->best_step();
  if (patience_) progress_.evaluations_without_gain = patience_->num_without_gain();
  return is_best;
}

void Trainer::tell_summary() {
  LogRecord summary = speed_.summary();
  if (checkpointer_ != nullptr && checkpointer_->num_failures() > 0) {
    summary.set("failed_saves", checkpointer_->num_failures());
  }
  if (step_.scaler() != nullptr) summary.set("skipped_steps", progress_.step - progress_.num_advanced);
  if (more_summary_) {
    const LogRecord more = more_summary_();
    for (const auto& [key, value] : more.entries()) summary.set(key, value);
  }
  listeners_.on_summary(now(), summary);
}

}  // namespace tessera
