// What a script reserves and how many ranks it starts, as an experiment's resources. (no torch)
#pragma once

#include "experiment/import/accelerate_config.h"
#include "experiment/import/script_reader.h"
#include "experiment/values.h"

namespace tessera {

// The launch line decides about ranks, the #SBATCH lines about the rest; where they differ, a remark says so.
Values imported_resources(const ScriptFacts& script, const LaunchLine& launch, const AccelerateConfig& accelerate,
                          Remarks& remarks);

}  // namespace tessera
