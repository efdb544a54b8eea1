// `tessera launch`, and the hidden `tessera __minder` that it starts once per rank (run_rank_runner, in
// launch/rank_runner.h).
#pragma once

#include <string>
#include <vector>

#include "launch/rank_runner.h"

namespace tessera {

// `args` are the words after `launch`; `subcommands` those of Tessera that ranks may run. Returns the exit status.
int run_launch(const std::vector<std::string>& args, const std::vector<std::string>& subcommands);

}  // namespace tessera
