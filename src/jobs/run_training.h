// The part of a run that is the same for all jobs: listeners, trainer, checkpoints; at the end the best model back and
// its folder.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "state/checkpoints.h"
#include "report/plan_report.h"
#include "report/train_reports.h"
#include "tessera/world.h"
#include "report/console.h"
#include "train/trainer.h"

namespace tessera {

// All must outlive the run.
struct RunParts {
  World& world;
  const TrainRun& run;
  const TrainSettings& settings;  // the run's, with what was left to it decided
  TrainTask& task;
  const SavedModel& model;
  ParameterSource first_values;                     // of the engine; empty: the model's own
  std::optional<std::filesystem::path> checkpoint;  // to go on with
  std::function<PlanReport()> plan;                 // of its memory
};

// What a job adds. Either may be empty; both are called on every rank.
struct RunHooks {
  using Hook = std::function<void(Trainer&, Console&, Listeners&)>;
  Hook before;  // the first update, the checkpoint being read
  Hook after;   // the model is saved
};

// Returns the exit status: 0, or 128 + the signal that stopped it. Collective.
int run_training(RunParts parts, const RunHooks& hooks);

// For --dry_run: what run_training would find out before its first step, but for what takes the run's memory. Throws
// UsageError; rank 0 prints the plan.
void check_run(const RunParts& parts);

}  // namespace tessera
