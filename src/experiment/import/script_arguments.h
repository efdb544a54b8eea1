// A training program's arguments and exported variables: which are settings of `tessera train`, which the run needs,
// which it does not. (no torch)
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "core/environment.h"
#include "experiment/import/script_reader.h"

namespace tessera {

// Words for the schema's read_command_line(), "--name=value" each; a remark on every argument that is not among them.
std::vector<std::string> arguments_for(const Schema& schema, const LaunchLine& launch, const std::string& job,
                                       Remarks& remarks);

struct ScriptEnvironment {
  Environment settings;  // those whose names are in `setting_names`
  Values kept;           // for the experiment's environment
};

ScriptEnvironment read_script_environment(const ScriptFacts& script, const LaunchLine& launch,
                                          const std::vector<std::string>& setting_names, Remarks& remarks);

}  // namespace tessera
