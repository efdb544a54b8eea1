#include "train/trainer.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/host.h"
#include "core/log.h"
#include "core/text.h"
#include "model/dropout.h"
#include "settings/load.h"
#include "train/step_setup.h"

namespace tessera {
namespace {

constexpr std::size_t kMostUnread = 1000;  // losses kept on the device if a run logs nothing

}  // namespace

Trainer::Trainer(World& world, TrainTask& task, const TrainSettings& settings, const StepPlan& plan,
                 ParameterSource first_values, Listeners& listeners, Checkpointer* checkpointer)
    : world_(world),
      task_(task),
      settings_(settings),
      listeners_(listeners),
      checkpointer_(checkpointer),
      plan_(plan),
      schedule_(schedule_options(plan_, settings)),
      flow_(with_short_runs_logged(settings.flow, plan_.total_steps()), plan_.total_steps()),
      step_(world, task.model(), units_to_spread(task.model(), settings.wrap),
            step_options(settings, task.model(), world.device(), std::move(first_values))),
      speed_(settings.loop.batch_size * settings.loop.accumulation * world.size(), steady_seconds()) {
  settings_.flow = with_short_runs_logged(settings.flow, plan_.total_steps());
  step_.set_optimizer(choose_optimizer(settings_.optimizer.optim, settings_.optimizer.numbers));
  const EvaluationSettings& evaluation = settings_.evaluation;
  if (!evaluation.metric_for_best_model.empty()) {
    best_.emplace(evaluation.metric_for_best_model, evaluation.greater_is_better);
  }
  if (evaluation.early_stopping_patience > 0) {
    patience_.emplace(evaluation.early_stopping_patience, evaluation.early_stopping_threshold);
    shape_.early_stopping_patience = evaluation.early_stopping_patience;
    shape_.early_stopping_threshold = evaluation.early_stopping_threshold;
  }
  shape_.total_steps = plan_.total_steps();
  shape_.num_train_epochs = plan_.num_epochs();
  shape_.train_batch_size = settings_.loop.batch_size;
  shape_.num_rows = task_.num_rows();
  shape_.rows_of_update = settings_.loop.batch_size * settings_.loop.accumulation * world_.size();
  shape_.row_order = row_order(settings_);
  shape_.is_regrouped = plan_.is_regrouped();
  shape_.started = wall_seconds();
  shape_.logging_steps = settings_.flow.logging_steps;
  shape_.eval_steps = settings_.flow.eval_steps.value_or(settings_.flow.logging_steps);
  shape_.save_steps = settings_.flow.save_steps;
}

void Trainer::restore(const RunState& saved, const std::optional<LossScaler::State>& scale) {
  check_resumable(saved.progress, plan_);
  if (world_.rank() == 0) warn_of_differences(saved, shape_);
  progress_ = saved.progress;
  // Another program's checkpoint may only say how many steps it has made.
  if (!progress_.position && progress_.epoch == 0 && progress_.step > 0) {
    progress_.epoch = plan_.update(progress_.step).epoch_after;
  }
  // A run is later than the run it resumes, even if the clocks of two hosts disagree.
  shape_.started = std::max(shape_.started, std::nextafter(saved.shape.started, INFINITY));
  flow_ = Flow(settings_.flow, plan_.total_steps(), progress_.step);
  losses_ = LossMeter(progress_.total_loss, progress_.num_losses);
  step_.optimizer().set_num_updates(progress_.num_advanced);
  if (step_.scaler() != nullptr && scale) step_.scaler()->set_state(*scale);
  if (best_) best_->restore(progress_.best_value, progress_.best_step);
  if (patience_) patience_->restore(progress_.evaluations_without_gain);
}

RunMoment Trainer::now() const {
  return {progress_.step, plan_.total_steps(), progress_.epoch, wall_seconds()};
}

RunEnd Trainer::run() {
  task_.model().train();
  listeners_.on_train_begin(now());
  const double begin = steady_seconds();
  first_step_ = progress_.step;
  first_epoch_ = progress_.epoch;
  speed_.resume_at(progress_.step, begin);
  if (settings_.evaluation.on_start && task_.num_eval_rows() > 0) evaluate();
  if (own_signal_) stop_vote_.emplace(world_);
  StepClock& clock = step_.engine().clock();
  clock.begin();
  while (progress_.step < plan_.total_steps() && !should_stop_) {
    const Update update = plan_.update(progress_.step + 1);
    phase_ = fmt::format("step {}", update.step);
    run_update(update);
    progress_.step = update.step;
    progress_.epoch = update.epoch_after;
    progress_.position = update.position_after;
    clock.end_step();  // what follows is the next step's: a log line can then show this one
    if (between_updates(update)) break;
  }
  stop_vote_.reset();
  return finish(begin);
}

// Logs, evaluations, checkpoints. Returns whether a signal asks to stop.
bool Trainer::between_updates(const Update& update) {
  const auto timed = step_.engine().clock().enter_sealed(StepPart::kOther);
  listeners_.on_step_end(now());
  act(flow_.after_step(progress_.step));
  if (update.ends_epoch || update.ends_run || should_stop_) {
    act(flow_.after_epoch(progress_.step, progress_.epoch));
    if (after_epoch_) after_epoch_(update);
  }
  return must_stop();
}

RunEnd Trainer::finish(double begin) {
  phase_ = "the end of training";
  step_.engine().finish_updates();
  read_losses();
  if (has_fixed_scale() && progress_.step > 0 && progress_.num_advanced == 0) {
    throw Error(
        fmt::format("no update was made: in every step the gradients overflowed float16 at a loss scale of {}; give a "
                    "smaller --loss_scale, or none",
                    step_.loss_scale()));
  }
  if (stop_signal_ != 0 && progress_.step < plan_.total_steps()) {
    if (settings_.flow.saving != Interval::kNo && !is_saved()) save();
    if (checkpointer_ != nullptr) checkpointer_->finish();
    tell_summary();
    return RunEnd::kInterrupted;
  }
  if (checkpointer_ != nullptr) checkpointer_->finish();
  // Of what this run did: a resumed one has not trained on the rows before its checkpoint.
  const double num_samples = first_step_ == 0
                                 ? plan_.train_samples(task_.num_rows(), shape_.rows_of_update)
                                 : (progress_.epoch - first_epoch_) * static_cast<double>(task_.num_rows());
  log(train_summary(steady_seconds() - begin, num_samples, progress_.step - first_step_, losses_.run_mean(),
                    progress_.epoch));
  tell_summary();
  if (settings_.evaluation.at_end && task_.num_eval_rows() > 0) evaluate();
  return should_stop_ ? RunEnd::kStoppedEarly : RunEnd::kFinished;
}

bool Trainer::must_stop() {
  if (!stop_vote_) return false;
  const bool is_writing = checkpointer_ != nullptr && checkpointer_->is_writing();
  const StepVote vote = stop_vote_->after_step({own_signal_(), is_writing});
  stop_signal_ = vote.signal;
  if (checkpointer_ != nullptr) checkpointer_->poll(vote.is_writing);
  return stop_signal_ != 0;
}

// StepLR counts epochs.
std::int64_t Trainer::num_advanced_before(const Update& update) const {
  return settings_.schedule.kind == "StepLR" ? update.epoch : progress_.num_advanced;
}

std::uint64_t Trainer::seed_of(std::int64_t step, std::int64_t pass) const {
  std::uint64_t seed = static_cast<std::uint64_t>(settings_.loop.seed);
  seed = mix_seed(seed, static_cast<std::uint64_t>(world_.rank()));
  seed = mix_seed(seed, static_cast<std::uint64_t>(step));
  return mix_seed(seed, static_cast<std::uint64_t>(pass));
}

void Trainer::run_update(const Update& update) {
  StepClock& clock = step_.engine().clock();
  TrainTask::UpdateShape shape;
  {
    const auto timed = clock.enter(StepPart::kData);
    shape = task_.begin_update(update);
  }
  if (shape.num_counted == 0) {
    throw UsageError(
        fmt::format("step {}: none of its tokens counts for the loss: its rows may be too short, or cut to "
                    "--max_length before what counts",
                    update.step));
  }
  const double factor = step_.loss_factor(static_cast<double>(shape.num_counted));
  const double rate = schedule_.at(num_advanced_before(update));
  const StepArguments arguments{
      .learning_rate = rate, .max_norm = settings_.optimizer.max_grad_norm, .may_skip = !settings_.loop.stop_on_nan};
  at::Tensor sum = at::zeros({}, at::dtype(at::kDouble).device(world_.device()));
  for (std::int64_t pass_number = 0; pass_number < shape.num_passes; ++pass_number) {
    {
      const auto timed = clock.enter(StepPart::kData);
      task_.load();
    }
    at::Tensor loss;
    {
      const auto pass = step_.forward();
      loss = task_.loss_sum(step_.runner(), seed_of(update.step, pass_number), factor);
    }
    sum += loss.detach();
    const bool is_last = pass_number + 1 == shape.num_passes;
    if (is_last) step_.announce(arguments);
    step_.backward(loss, factor, is_last);
  }
  const StepOutcome outcome = finish_update(arguments, update);
  if (outcome.skipped) check_skipped(update, outcome, sum);
  if (!outcome.skipped) ++progress_.num_advanced;
  last_norm_ = outcome.gradient_norm;
  used_rate_ = rate;
  const std::int64_t num_advanced =
      settings_.schedule.kind == "StepLR" ? update.epoch + (update.ends_epoch ? 1 : 0) : progress_.num_advanced;
  last_rate_ = schedule_.at(num_advanced);
  unread_losses_.push_back(sum);
  unread_counts_.push_back(static_cast<double>(shape.num_counted));
  if (unread_losses_.size() >= kMostUnread) read_losses();
}

bool Trainer::has_fixed_scale() const {
  return step_.scaler() != nullptr && settings_.precision.loss_scale.rule == LossScaleOptions::Rule::kFixed;
}

StepOutcome Trainer::finish_update(const StepArguments& arguments, const Update& update) {
  try {
    return step_.update(arguments);
  } catch (const Error& error) {
    throw error.in_context(fmt::format("step {}", update.step));
  }
}

// All ranks skip together. The scaler handles a scale that was too large; a loss that is not finite goes to the user.
void Trainer::check_skipped(const Update& update, const StepOutcome& outcome, const at::Tensor& own_loss) {
  const auto losses = gather_numbers(world_, {own_loss.item<double>()});
  std::vector<std::string> ranks;
  double first = 0;  // of those that are not finite
  for (std::size_t rank = 0; rank < losses.size(); ++rank) {
    if (std::isfinite(losses[rank][0])) continue;
    if (ranks.empty()) first = losses[rank][0];
    ranks.push_back(fmt::to_string(rank));
  }
  std::string what = describe(outcome.faults);
  if (!ranks.empty()) {
    what = fmt::format("the loss is {} on rank{} {}", first, ranks.size() == 1 ? "" : "s", join(ranks, ", "));
  } else if (step_.scaler() != nullptr) {
    // Usual in the first steps, while the scale adapts; a fixed one never does.
    if (world_.rank() != 0) return;
    const std::string text =
        fmt::format("step {}: gradients overflow float16 at a loss scale of {}; skipping the update", update.step,
                    outcome.loss_scale);
    has_fixed_scale() ? log_warn("{}", text) : log_info("{}", text);
    return;
  }
  const std::string message = fmt::format("step {}: {}", update.step, what);
  if (settings_.loop.stop_on_nan) {
    const char* advice =
        divides_by_zero(settings_.optimizer)
            ? "--adam_epsilon is 0, so that a parameter whose gradients were all 0 becomes NaN: use 1e-8"
            : "a lower learning rate, clipping or bf16 instead of fp16 may help (--stop_on_nan false skips the update "
              "and continues)";
    throw Error(fmt::format("{}; {}", message, advice));
  }
  if (world_.rank() == 0) log_warn("{}; skipping the update", message);
}

// Reported to rank 0's listeners; every rank keeps it in its state, which checkpoints hold.
void Trainer::log(const LogRecord& record) {
  listeners_.on_log(now(), record);
  LogRecord kept = record;
  kept.set("step", progress_.step);
  progress_.history.push_back(std::move(kept));
}

}  // namespace tessera
