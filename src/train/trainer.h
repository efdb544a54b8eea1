// The training loop: updates from micro-batches, with schedule, clipping and loss scale; logs, evaluations and
// checkpoints when the flow says so.
//
// All ranks run it together. Order: construct (collective: spreads the model), then run() once. The caller reports the
// end to the listeners, since the saved model and its metrics come before that.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/train_step.h"
#include "settings/train_settings.h"
#include "tessera/world.h"
#include "train/checkpointer.h"
#include "train/flow.h"
#include "train/listener.h"
#include "train/meters.h"
#include "train/run_state.h"
#include "train/schedule.h"
#include "train/step_plan.h"
#include "train/stop_signals.h"
#include "train/task.h"

namespace tessera {

// The settings' merge_accumulation is on or off: the creator of the task has resolved auto.
class Trainer {
 public:
  // All arguments but the plan must outlive it. `first_values`: the parameters' first values, asked for unit by unit.
  // Without a checkpointer nothing is saved.
  Trainer(World& world, TrainTask& task, const TrainSettings& settings, const StepPlan& plan,
          ParameterSource first_values, Listeners& listeners, Checkpointer* checkpointer = nullptr);

  // What every evaluation shows besides the task's own metrics: {'eval_f1': ...}. Collective.
  void add_metrics(std::function<LogRecord()> metrics) { more_metrics_ = std::move(metrics); }
  // Called on all ranks at the end of an epoch, or of the run within one, after its log, evaluation and save.
  // Collective.
  void after_epoch(std::function<void(const Update&)> hear) { after_epoch_ = std::move(hear); }
  // Numbers of the whole run (the utilization), reported to the listeners with its speed. Collective.
  void add_summary(std::function<LogRecord()> summary) { more_summary_ = std::move(summary); }
  // Returns the signal that asks this rank to stop, or 0: checked after each step (stop_signals.h).
  void stop_by(std::function<int()> signal) { own_signal_ = std::move(signal); }
  // Call it before run(): continues from a checkpoint whose weights and moments the caller has restored, and for which
  // the plan was made. Throws like check_resumable.
  void restore(const RunState& state, const std::optional<LossScaler::State>& scale);

  // kFinished; kStoppedEarly if evaluations stopped improving; kInterrupted by a signal to any rank, with a checkpoint
  // of the last step unless saving is off. Throws Error naming step and rank if a loss is not finite.
  RunEnd run();
  int stop_signal() const { return stop_signal_; }  // of kInterrupted
  // Whether this run's last checkpoint is of the current step.
  bool is_saved() const { return checkpointer_ != nullptr && checkpointer_->saved_step() == progress_.step; }
  // The current phase, for the message of a failed run: "step 3", "the evaluation after step 4".
  const std::string& phase() const { return phase_; }
  // Metrics of the whole evaluation set, the same on every rank; also reports them to the listeners. Collective.
  LogRecord evaluate();

  TrainStep& step() { return step_; }
  const StepPlan& plan() const { return plan_; }
  double used_rate() const { return used_rate_; }  // of the last update
  const RunProgress& progress() const { return progress_; }
  RunMoment now() const;

 private:
  void run_update(const Update& update);
  bool between_updates(const Update& update);
  RunEnd finish(double begin);  // what follows the last update
  StepOutcome finish_update(const StepArguments& arguments, const Update& update);
  bool has_fixed_scale() const;
  bool must_stop();
  void act(const Actions& actions);
  void save();
  void tell_summary();
  void log(const LogRecord& record);
  void log_losses();
  bool evaluate_and_judge();  // whether it is the best so far
  void read_losses();
  void check_skipped(const Update& update, const StepOutcome& outcome, const at::Tensor& own_loss);
  std::int64_t num_advanced_before(const Update& update) const;
  std::uint64_t seed_of(std::int64_t step, std::int64_t pass) const;

  World& world_;
  TrainTask& task_;
  TrainSettings settings_;
  Listeners& listeners_;
  Checkpointer* checkpointer_;
  std::function<LogRecord()> more_metrics_, more_summary_;
  std::function<int()> own_signal_;
  std::function<void(const Update&)> after_epoch_;

  StepPlan plan_;
  Schedule schedule_;
  Flow flow_;
  TrainStep step_;
  LossMeter losses_;
  SpeedMeter speed_;
  std::optional<BestModel> best_;
  std::optional<EarlyStopping> patience_;
  RunProgress progress_;
  RunShape shape_;

  // For the updates since the last log: this rank's sums, on the device, and their divisors. They are read, and summed
  // over the ranks, only when they are logged.
  std::vector<at::Tensor> unread_losses_;
  std::vector<double> unread_counts_;
  double last_norm_ = 0, used_rate_ = 0, last_rate_ = 0;
  std::int64_t first_step_ = 0;  // done before this run
  double first_epoch_ = 0;
  bool should_stop_ = false;
  std::optional<StopVote> stop_vote_;
  int stop_signal_ = 0;
  std::string phase_;
};

}  // namespace tessera
