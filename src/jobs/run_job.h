// `tessera train` on each rank: opens, trains and saves a job, with all its listeners.
#pragma once

#include "listeners/run_reports.h"
#include "settings/load.h"
#include "tessera/world.h"

namespace tessera {

// From the settings to the saved model. Returns the exit status: 0, or 128 + the signal that stopped the run. With
// --dry_run it does everything up to the first step except allocating the run's memory, and rank 0 prints the plan.
// `make_page`: of the run's page, which rank 0 writes at the end. Collective.
int run_job(World& world, const LoadedTrainSettings& run, const MakePage& make_page);

}  // namespace tessera
