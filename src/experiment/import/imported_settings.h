// A script's arguments and exported variables as settings of `tessera train`, by the job's own declarations. (no torch)
#pragma once

#include <string>

#include "experiment/import/accelerate_config.h"
#include "experiment/import/script_reader.h"
#include "settings/job_traits.h"

namespace tessera {

struct ImportedSettings {
  Values settings;     // of the experiment
  Values own_folder;   // output_dir and the like: an experiment's runs have their own, a plain command needs them
  Values environment;  // exported before the run: NCCL's variables and others that libraries read
};

// Throws UsageError, with the place, for a value that its setting does not allow and for two names of one setting that
// differ.
ImportedSettings imported_settings(const ScriptFacts& script, const LaunchLine& launch, const JobTraits& job,
                                   const AccelerateConfig& accelerate, Remarks& remarks);

}  // namespace tessera
