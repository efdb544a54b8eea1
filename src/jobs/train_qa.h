// `tessera train bloom-qa` and `gpt-qa`, within the ranks.
#pragma once

#include "report/train_reports.h"
#include "tessera/world.h"

namespace tessera {

// From the files to the saved model. Returns the exit status. Collective.
int train_qa(World& world, const TrainRun& run);

}  // namespace tessera
