// The nodes and GPUs of a table's row in words. (no torch)
#pragma once

#include <string>

#include "experiment/experiments.h"
#include "record/run_record.h"

namespace tessera {

// "1 node x 2 GPUs": of the run where there is one, since GPUs per node are a setting. `run` may be null.
std::string setup_text(const Experiment& experiment, const RunRecord* run);

}  // namespace tessera
