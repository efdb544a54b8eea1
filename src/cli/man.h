// `tessera man`: the man page of the program.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace tessera {

// `commands`: all of the program's. Prints roff for section 1, the same for the same program.
int run_man(const std::vector<std::string>& args, const std::vector<Command>& commands);

}  // namespace tessera
