// An experiment as `tessera experiment show` prints it. (no torch)
#pragma once

#include <string>

#include "experiment/resolved.h"

namespace tessera {

// Every value with its origin, how many steps the run will have where that is known, and the equivalent command.
std::string show_text(const ResolvedExperiment& experiment, const std::vector<const JobTraits*>& jobs);

// "updates: 93, 32 in an epoch of 500 rows; ends at epoch 2.93": empty where rows are not known without the data.
std::string steps_text(const ResolvedExperiment& experiment, const std::vector<const JobTraits*>& jobs);

}  // namespace tessera
