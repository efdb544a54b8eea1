// `tessera launch`, and the hidden `tessera __minder` that it starts once per rank (run_minder, in launch/minder.h).
#pragma once

#include <string>
#include <vector>

#include "launch/minder.h"

namespace tessera {

// `args` are the words after `launch`; `subcommands` those of Tessera that ranks may run. Returns the exit status.
int run_launch(const std::vector<std::string>& args, const std::vector<std::string>& subcommands);

}  // namespace tessera
