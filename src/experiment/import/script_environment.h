// A script's exported variables: which are settings, which the run needs, which it does not. (no torch)
#pragma once

#include <string>
#include <vector>

#include "core/environment.h"
#include "experiment/import/script_reader.h"

namespace tessera {

struct ScriptEnvironment {
  Environment settings;  // those whose names are in `setting_names`
  Values kept;           // for the experiment's environment
};

ScriptEnvironment read_script_environment(const ScriptFacts& script, const LaunchLine& launch,
                                          const std::vector<std::string>& setting_names, Remarks& remarks);

}  // namespace tessera
