#include "jobs/train_run.h"

#include <fmt/format.h>

#include <optional>

#include "jobs/train_memory.h"
#include "comm/failure.h"
#include "core/error.h"
#include "core/host.h"
#include "core/log.h"
#include "core/output.h"
#include "train/stop_signals.h"

namespace tessera {
namespace {

// Why the run ends here and how it goes on.
std::string interruption_text(const TrainRun& run, Trainer& trainer) {
  const RunMoment at = trainer.now();
  const std::string what =
      fmt::format("{}: stopped after step {} of {}", stop_signal_name(trainer.stop_signal()), at.step, at.total_steps);
  if (!trainer.is_saved()) return what + "; nothing was saved, as --save_strategy no says";
  const OutputSettings& output = run.settings().output;
  if (output.save_only_model) return what + "; its model was saved, which --save_only_model keeps from being resumed";
  return fmt::format("{}; --resume_from_checkpoint true goes on there", what);
}

// What follows the last step. A signal during the answers ends the process as it always does: the model is there.
std::string finish(World& world, std::optional<StopSignals>& signals, const std::function<void()>& save,
                   const std::function<void()>& after) {
  save();
  const int signal = signal_of_any_rank(world);
  signals.reset();
  if (signal == 0) after();
  return signal == 0
             ? ""
             : fmt::format("{}: the model was saved, and what would have followed left out", stop_signal_name(signal));
}

int run_and_tell(World& world, const TrainRun& run, Trainer& trainer, Listeners& listeners,
                 const std::function<void()>& save, const std::function<void()>& after) {
  try {
    std::optional<StopSignals> signals(std::in_place);
    trainer.stop_by(&StopSignals::received);
    const RunEnd end = trainer.run();
    const bool is_interrupted = end == RunEnd::kInterrupted;
    const std::string why = is_interrupted ? interruption_text(run, trainer) : finish(world, signals, save, after);
    listeners.on_train_end(trainer.now(), end, why);
    if (world.rank() == 0 && !why.empty()) log_warn("{}", why);
    if (!is_interrupted) return 0;
    const int status = 128 + trainer.stop_signal();
    record_failure({.rank = world.rank(), .host = host_name(), .message = why, .exit_status = status});
    return status;
  } catch (const std::exception& error) {
    const std::string what = message_of(error);
    listeners.on_train_end(trainer.now(), RunEnd::kFailed, what);
    if (is_out_of_memory(error)) throw MemoryError(fmt::format("{}: {}", trainer.phase(), what));
    throw;
  }
}

}  // namespace

int run_to_end(World& world, const TrainRun& run, Trainer& trainer, Console& console, Listeners& listeners,
               const std::function<void()>& save, const std::function<void()>& after) {
  const int status = run_and_tell(world, run, trainer, listeners, save, after);
  if (!console.failure().empty()) throw OutputError(console.failure());
  return status;
}

}  // namespace tessera
