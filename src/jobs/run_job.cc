#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

#include "comm/exchange.h"
#include "comm/failure.h"
#include "core/error.h"
#include "core/host.h"
#include "core/log.h"
#include "core/output.h"
#include "jobs/jobs.h"
#include "jobs/run_plan.h"
#include "listeners/rank_log.h"
#include "monitor/job_processes.h"
#include "plan/plan_report.h"
#include "settings/load.h"
#include "state/checkpoint.h"
#include "state/checkpoint_folder.h"
#include "state/checkpoint_keeper.h"
#include "state/model_output.h"
#include "state/output_lock.h"
#include "state/resume.h"
#include "train/step_setup.h"
#include "train/stop_signals.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

void start(World& world, const LoadedTrainSettings& run) {
  on_first_rank(world, [&] { check_replaces_no_model(run.settings.output, run.request.environment); });
  const SpreadOptions& spread = run.settings.spread;
  if (world.rank() == 0) {
    for (const std::string& note : run.notes) log_info("{}", note);
    if (world.device().is_cpu() && (spread.offload_optimizer || spread.offload_parameters)) {
      log_info("offload {} nothing here: a CPU's memory is the host's",
               spread.delayed_update ? "and --delayed_update change" : "changes");
    }
  }
  open_rank_log(run, world);
  if (world.rank() == 0 && world.device().is_cpu() && run.settings.precision.compute == NumberType::kFloat16) {
    log_warn("{}: float16 is tens of times slower than float32 on a CPU; use --bf16, or float32 (--no_fp16)",
             shown(*run.schema, "fp16"));
  }
  for (const std::string& note : set_numerics(run.settings, world.device())) log_info("{}", note);
  prepare_output_folder(world, run.settings.output.output_dir);
}

// Before the checkpoint to resume is looked for: another run may be about to write one. All ranks write checkpoints, so
// all must see the folder: better refused now than when the first one is due.
void lock_output(World& world, const LoadedTrainSettings& run, std::optional<OutputLock>& lock) {
  const OutputSettings& output = run.settings.output;
  on_first_rank(world, [&] { lock.emplace(output.output_dir, run.request.environment); });
  if (run.settings.flow.saving == Interval::kNo || output.save_only_model) return;
  on_every_rank(world, [&] { check_is_shared(OutputLock::file_in(output.output_dir)); });
}

// A run that was stopped may have been meant to go on.
void warn_of_checkpoints(const OutputSettings& output) {
  if (output.overwrites || find_checkpoints(output.output_dir).empty()) return;
  log_warn(
      "{} has checkpoints of an earlier run: this one starts anew, and replaces those of the same steps; "
      "--resume_from_checkpoint true continues the earlier one",
      output.output_dir);
}

// For --dry_run: what a run does before its first step, except allocating its memory.
void check_run(World& world, OpenJob& job, const std::optional<RunState>& resumed, const StepPlan& steps) {
  if (resumed) check_resumable(resumed->progress, steps);
  const std::string text = plan_text(job.memory_plan());
  if (world.rank() != 0) return;
  if (!has_planned_units(job.task().model(), job.settings().wrap)) {
    log_warn("the memory shown is for --wrap blocks, which this run does not use");
  }
  print_out(text);
}

// For --predict_speed.
void predict_speed(World& world, OpenJob& job) {
  if (world.rank() == 0) log_info("--predict_speed: a few updates are tried");
  const double seconds = job.predicted_update_seconds();
  const LoopSettings& loop = job.settings().loop;
  const auto rows = static_cast<double>(loop.batch_size * loop.accumulation * world.size());
  if (world.rank() != 0) return;
  print_out(fmt::format("expected: {:.1f} samples/s, {:.1f} ms for an update of {:.0f} rows\n", rows / seconds,
                        seconds * 1000, rows));
}

// Refuses what cannot fit. Nodes may have different memory, so one that lacks it ends all.
void check_memory(World& world, OpenJob& job) {
  if (!has_planned_units(job.task().model(), job.settings().wrap)) return;
  on_every_rank(world, [&] {
    try {
      check_plan(world, job.memory_plan());
    } catch (const std::exception& error) {
      const auto* known = dynamic_cast<const Error*>(&error);
      if (known != nullptr && known->status() == ExitStatus::kOutOfMemory) throw;
      log_debug("no memory plan: {}", error.what());  // only advice; if something is wrong, the run itself reports it
    }
  });
}

// The training of an open job: listeners, checkpoints, trainer.
class Training {
 public:
  Training(World& world, const LoadedTrainSettings& run, OpenJob& job, const StepPlan& steps,
           const std::optional<Checkpoint>& checkpoint, const std::optional<RunState>& resumed,
           const std::optional<OutputLock>& lock, const MakePage& make_page)
      : world_(world),
        job_(job),
        lock_(lock),
        make_page_(make_page),
        state_(resumed.value_or(RunState())),
        last_moment_(last_moment(run)),
        console_(Console::of_process()),
        reports_(run, world, history(checkpoint), facts_of(world, run, job, steps, state_.progress.step), console_,
                 listeners_),
        keeper_(world, job.saved_model(), job.settings().output, listeners_, [this] { lock_->check(); }),
        trainer_(world, job.task(), job.settings(), steps, first_values(checkpoint), listeners_, &keeper_) {
    reports_.watch(trainer_.step().engine().clock());
    trainer_.add_summary([this] { return reports_.summary(); });
    if (checkpoint) {
      resume(world, trainer_, job.saved_model(), *checkpoint, state_);
      keeper_.adopt(checkpoint->folder(), state_.progress);
      if (world.rank() == 0) announce_resume(*checkpoint);
    }
    job.before_training(trainer_, console_, listeners_);
  }

  // Tells the listeners how it ended.
  int run() {
    try {
      std::optional<StopSignals> signals(std::in_place);
      trainer_.stop_by([this] { return own_signal(); });
      const RunEnd end = trainer_.run();
      const std::string why = end == RunEnd::kInterrupted ? interruption() : finish(signals);
      listeners_.on_train_end(trainer_.now(), end, why);
      reports_.write_page(make_page_, end);
      if (world_.rank() == 0 && !why.empty()) log_warn("{}", why);
      // A script that requeues stopped runs must not do so for ever.
      const int stopped = is_lost() ? static_cast<int>(ExitStatus::kFailure) : 128 + trainer_.stop_signal();
      const int status = end == RunEnd::kInterrupted ? stopped : 0;
      if (status != 0) {
        record_failure({.rank = world_.rank(), .host = host_name(), .message = why, .exit_status = status});
      }
      if (!console_.failure().empty()) throw OutputError(console_.failure());
      return status;
    } catch (const OutputError&) {
      throw;
    } catch (const std::exception& error) {
      const std::string what = message_of(error);
      listeners_.on_train_end(trainer_.now(), RunEnd::kFailed, what);
      reports_.write_page(make_page_, RunEnd::kFailed);
      if (is_out_of_memory(error)) throw MemoryError(fmt::format("{}: {}", trainer_.phase(), what));
      throw;
    }
  }

 private:
  // None where the checkpoint's replace them: each rank then reads only its own part.
  ParameterSource first_values(const std::optional<Checkpoint>& checkpoint) const {
    if (checkpoint && checkpoint->is_read_in_parts()) return [](const std::string&, const at::Tensor&) {};
    return job_.first_values();
  }

  void announce_resume(const Checkpoint& checkpoint) const {
    log_info("resuming after step {} from {}{}", state_.progress.step, checkpoint.folder().string(),
             checkpoint.program().empty() ? "" : ", a checkpoint of " + checkpoint.program());
    for (const std::string& what : checkpoint.left_out()) log_info("not taken over: {}", what);
  }

  // Of the resumed run.
  RunHistory history(const std::optional<Checkpoint>& checkpoint) const {
    RunHistory history{state_.progress.history, std::nullopt};
    if (checkpoint && is_in_folder(checkpoint->folder(), job_.settings().output.output_dir)) {
      history.step_in_folder = state_.progress.step;
    }
    return history;
  }

  // A time limit that is near counts as the signal that Slurm sends for it.
  int own_signal() const {
    const int received = StopSignals::received();
    return received == 0 && is_out_of_time() ? SIGUSR1 : received;
  }

  bool is_out_of_time() const { return last_moment_ && steady_seconds() >= *last_moment_; }

  // When to save before the job's time limit; rank 0's.
  std::optional<double> last_moment(const LoadedTrainSettings& run) const {
    const double before = std::chrono::duration<double>(job_.settings().output.save_before_timeout).count();
    if (before <= 0 || world_.rank() != 0) return std::nullopt;
    try {
      const auto left = job_time_left(run.request.environment);
      if (left && *left > before) return steady_seconds() + *left - before;
      log_warn("--save_before_timeout is ignored: {}",
               left ? fmt::format("the job has only {:.0f} s left", *left) : "this is no Slurm job with a time limit");
    } catch (const Error& error) {
      log_warn("--save_before_timeout: the job's time limit is not known: {}", error.what());
    }
    return std::nullopt;
  }

  // What follows the last step. A signal during the answers ends the process as usual: the model is already saved.
  std::string finish(std::optional<StopSignals>& signals) {
    save_result();
    const int signal = signal_of_any_rank(world_);
    signals.reset();
    if (signal == 0) job_.after_saving(trainer_, console_, listeners_);
    return signal == 0 ? ""
                       : fmt::format("{}: the model was saved, and the rest was skipped", stop_signal_name(signal));
  }

  // Loads the best model, if requested, and writes the model's folder.
  void save_result() {
    Engine& engine = trainer_.step().engine();
    if (job_.settings().evaluation.load_best_model_at_end) {
      const std::optional<fs::path> best = keeper_.best();
      if (best) load_checkpoint_weights(world_, engine, job_.saved_model(), *best);
      if (world_.rank() == 0 && best) log_info("the best model is from {}", best->string());
      if (world_.rank() == 0 && !best) {
        log_warn("load_best_model_at_end: the best model was not saved; the last one stays");
      }
    }
    const std::string& output_dir = job_.settings().output.output_dir;
    on_first_rank(world_, [&] { lock_->check(); });
    prepare_output_folder(world_, output_dir);  // it may have been removed meanwhile
    save_model_folder(world_, engine, job_.saved_model(), output_dir);
    if (world_.rank() != 0) return;
    const char* what = job_.saved_model().files.empty() ? "Model" : "Model and tokenizer";
    console_.print_line(fmt::format("{} saved to {}", what, output_dir));
  }

  // Interrupted, and what should have been saved was not.
  bool is_lost() const { return job_.settings().flow.saving != Interval::kNo && !trainer_.is_saved(); }

  // Why the run ends here and how it can be resumed.
  std::string interruption() const {
    const RunMoment at = trainer_.now();
    const bool has_signal = StopSignals::received() != 0 || !is_out_of_time();
    const std::string what =
        fmt::format("{}: stopped after step {} of {}",
                    has_signal ? stop_signal_name(trainer_.stop_signal()) : "the job's time limit is near", at.step,
                    at.total_steps);
    if (is_lost()) return what + "; its checkpoint was not written";
    if (!trainer_.is_saved()) return what + "; nothing was saved, because of --save_strategy no";
    if (job_.settings().output.save_only_model) {
      return what + "; only the model was saved, because of --save_only_model: the run cannot be resumed";
    }
    return what + "; --resume_from_checkpoint true resumes it";
  }

  World& world_;
  OpenJob& job_;
  const std::optional<OutputLock>& lock_;  // rank 0's
  const MakePage& make_page_;
  RunState state_;
  std::optional<double> last_moment_;  // in steady_seconds()
  Console console_;
  Listeners listeners_;
  RunReports reports_;
  CheckpointKeeper keeper_;
  Trainer trainer_;
};

}  // namespace

int run_job(World& world, const LoadedTrainSettings& run, const MakePage& make_page) {
  start(world, run);
  std::optional<OutputLock> lock;  // rank 0's
  if (!run.settings.dry_run) lock_output(world, run, lock);
  const std::optional<Checkpoint> checkpoint = checkpoint_to_resume(world, run.settings.output);
  if (!checkpoint && world.rank() == 0) warn_of_checkpoints(run.settings.output);
  std::optional<fs::path> folder;
  std::optional<RunState> resumed;
  if (checkpoint) folder = checkpoint->folder();
  const std::unique_ptr<OpenJob> job = job_of(run.settings.job).open(world, run, folder);
  if (checkpoint) resumed = checkpoint->run_state();
  const StepPlan steps = plan_steps(job->task(), job->settings(), world.size(), resumed);
  if (world.rank() == 0) job->announce(steps);
  if (run.settings.dry_run) check_run(world, *job, resumed, steps);
  check_memory(world, *job);
  std::string out_of_memory;
  try {
    if (run.settings.predicts_speed) predict_speed(world, *job);
    if (run.settings.dry_run) return 0;
    return Training(world, run, *job, steps, checkpoint, resumed, lock, make_page).run();
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    out_of_memory = message_without_memory(error);
  }
  // Thrown here, after the run's memory has been freed.
  throw out_of_memory_error(out_of_memory, [&] { return job->memory_plan(); });
}

}  // namespace tessera
