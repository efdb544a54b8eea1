// `tessera monitor [--interval 5] [--path DIR] [--job ID] -- COMMAND...`: writes the memory logs of any program while
// it runs, as `nvidia-smi -l` and `psrecord` beside it would.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// What follows `tessera monitor`. Returns the command's exit status: 128 + signal if one ended it, 127 if there is no
// such program, 126 if it cannot be started. The command has this process's input and output; what the monitor itself
// prints goes to standard error.
int run_monitor(const std::vector<std::string>& args);

}  // namespace tessera
