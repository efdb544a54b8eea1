// What a run is, with every open choice decided: for run.json and for those who compare runs.
#pragma once

#include "jobs/jobs.h"
#include "report/run_recorder.h"
#include "settings/load.h"
#include "tessera/world.h"

namespace tessera {

// Collective where the memory plan is.
RunFacts facts_of(const World& world, const LoadedTrainSettings& run, OpenJob& job, const StepPlan& steps);

}  // namespace tessera
