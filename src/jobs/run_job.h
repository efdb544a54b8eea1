// `tessera train` within the ranks: a job opened, trained and saved, with everybody who listens to it.
#pragma once

#include "settings/load.h"
#include "tessera/world.h"

namespace tessera {

// From the settings to the saved model. Returns the exit status: 0, or 128 + the signal that stopped the run. With
// --dry_run everything up to the first step but what takes the run's memory; rank 0 prints the plan. Collective.
int run_job(World& world, const LoadedTrainSettings& run);

}  // namespace tessera
