// The arguments of a training program, as far as they are settings of `tessera train`. (no torch)
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "experiment/import/launch_line.h"
#include "experiment/import/remark.h"

namespace tessera {

// Words for the schema's read_command_line(), "--name=value" each; a remark on every argument that is not among them.
std::vector<std::string> arguments_for(const Schema& schema, const LaunchLine& launch, const std::string& job,
                                       Remarks& remarks);

}  // namespace tessera
