// The catalogue's experiments as the tables know them. (no torch)
#pragma once

#include <vector>

#include "experiment/catalogue.h"
#include "experiment/experiments.h"

namespace tessera {

// In the catalogue's order; repeats of an experiment are one. Throws UsageError for nodes or GPUs that are no numbers.
std::vector<Experiment> table_experiments(const Catalogue& catalogue);

}  // namespace tessera
