// `tessera launch` from a finished plan to its exit status: attempts, restarts, agreement between nodes, the report.
#pragma once

#include <string>

#include "core/environment.h"
#include "launch/host.h"
#include "launch/settings.h"

namespace tessera {

// `self` is this executable, which also serves as minder. Returns the exit status: 0 if all ranks exited with 0, else
// that of the rank that failed first (128 + signal if it was killed). Throws Error if nothing could be started.
int run_launcher(const LaunchPlan& plan, const HostFacts& host, const Environment& environment,
                 const std::string& self);

}  // namespace tessera
