// Ranks that were stopped (SIGSTOP) and cannot end themselves.
#pragma once

#include <vector>

#include "comm/meeting/guest.h"

namespace tessera {

// The run has failed: kills the ranks of this host that are stopped. mpirun and `srun -K1` do so as well; plain srun
// would wait for them until the job's time limit.
void kill_stopped_peers(const std::vector<Guest>& roster) noexcept;

}  // namespace tessera
