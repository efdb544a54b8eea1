// `tessera completion bash|zsh|fish`: a script with which the shell completes Tessera's commands and options.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace tessera {

// `commands`: all of the program's.
int run_completion(const std::vector<std::string>& args, const std::vector<Command>& commands);

}  // namespace tessera
