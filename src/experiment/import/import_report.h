// What `tessera import` tells its user. (no torch)
#pragma once

#include <string>

#include "experiment/import/import_script.h"

namespace tessera {

// What was understood and what was not, by kind; then what `tessera train` says about the experiment, and the command.
std::string import_report(const Import& imported);

}  // namespace tessera
