#include "jobs/run_training.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "jobs/train_memory.h"
#include "jobs/train_plan.h"
#include "jobs/train_run.h"
#include "core/log.h"
#include "core/output.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// The best model back where that is asked for, and the folder.
void save_result(const RunParts& parts, Trainer& trainer, const CheckpointKeeper& keeper, Console& console) {
  World& world = parts.world;
  if (parts.settings.evaluation.load_best_model_at_end) {
    const std::optional<fs::path> best = keeper.best();
    if (best) load_checkpoint_weights(world, trainer.engine(), parts.model, *best);
    if (world.rank() == 0 && best) log_info("the best model is that of {}", best->string());
    if (world.rank() == 0 && !best) {
      log_warn("load_best_model_at_end: the best evaluation was not saved; the last model stays");
    }
  }
  const std::string& output_dir = parts.settings.output.output_dir;
  save_model_folder(world, trainer.engine(), parts.model, output_dir);
  if (world.rank() != 0) return;
  const char* what = parts.model.files.empty() ? "Model" : "Model and tokenizer";
  console.print_line(fmt::format("{} saved to {}", what, output_dir));
}

int run_parts(RunParts& parts, const RunHooks& hooks) {
  World& world = parts.world;
  const RunState state = parts.checkpoint ? read_checkpoint_state(*parts.checkpoint) : RunState();
  Console console = Console::of_process();
  Listeners listeners;
  RunHistory history{state.history, std::nullopt};
  if (parts.checkpoint && is_in_folder(*parts.checkpoint, parts.settings.output.output_dir)) {
    history.step_in_folder = state.step;
  }
  const std::shared_ptr<UtilisationMeter> utilisation = add_listeners(parts.run, world, history, console, listeners);
  CheckpointKeeper keeper(world, parts.model, parts.settings.output, listeners);
  // Nobody keeps them: they may hold a checkpoint's file, which is to go when its time has come.
  Trainer trainer(world, parts.task, parts.settings, std::exchange(parts.first_values, {}), listeners,
                  [&keeper](Trainer& at) { keeper.save(at); });
  trainer.add_summary([&] { return utilisation->summary(world); });
  if (parts.checkpoint) {
    resume(world, trainer, parts.model, *parts.checkpoint, state);
    keeper.go_on_from(*parts.checkpoint, state);
    if (world.rank() == 0) log_info("goes on after step {} of {}", state.step, parts.checkpoint->string());
  }
  if (hooks.before) hooks.before(trainer, console, listeners);
  return run_to_end(
      world, parts.run, trainer, console, listeners, [&] { save_result(parts, trainer, keeper, console); },
      [&] {
        if (hooks.after) hooks.after(trainer, console, listeners);
      });
}

}  // namespace

int run_training(RunParts parts, const RunHooks& hooks) {
  if (has_planned_units(parts.task.model(), parts.settings.spread)) {
    try {
      warn_of_too_large_a_plan(parts.world, parts.plan());
    } catch (const std::exception& error) {
      log_debug("no memory plan: {}", error.what());  // advice, no more; what is wrong the run will find
    }
  }
  return with_memory_advice(parts.plan, [&] { return run_parts(parts, hooks); });
}

void check_run(const RunParts& parts) {
  const bool is_planned = has_planned_units(parts.task.model(), parts.settings.spread);
  if (parts.checkpoint) {
    check_resumable(read_checkpoint_state(*parts.checkpoint), plan_steps(parts.task, parts.settings));
  }
  const std::string text = plan_text(parts.plan());
  if (parts.world.rank() != 0) return;
  if (!is_planned) log_warn("the memory shown is that of --wrap blocks, which this run does not have");
  print_out(text);
}

}  // namespace tessera
