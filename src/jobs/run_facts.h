// What a run is, with every open choice decided: for run.json and for those who compare runs.
#pragma once

#include "jobs/jobs.h"
#include "listeners/run_recorder.h"
#include "settings/load.h"
#include "tessera/world.h"

namespace tessera {

// `first_step`: updates done before this run resumed. Collective where the memory plan is.
RunFacts facts_of(const World& world, const LoadedTrainSettings& run, OpenJob& job, const StepPlan& steps,
                  std::int64_t first_step);

}  // namespace tessera
