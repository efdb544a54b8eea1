// `tessera train` on each rank: opens, trains and saves a job, with all its listeners.
#pragma once

#include "jobs/jobs.h"
#include "report/run_recorder.h"
#include "settings/load.h"
#include "tessera/world.h"

namespace tessera {

// From the settings to the saved model. Returns the exit status: 0, or 128 + the signal that stopped the run. With
// --dry_run it does everything up to the first step except allocating the run's memory, and rank 0 prints the plan.
// Collective.
int run_job(World& world, const LoadedTrainSettings& run);

// What a run is, with every open choice decided: for run.json and for those who compare runs. `first_step`: updates
// done before this run resumed. Collective where the memory plan is.
RunFacts facts_of(const World& world, const LoadedTrainSettings& run, OpenJob& job, const StepPlan& steps,
                  std::int64_t first_step);

}  // namespace tessera
