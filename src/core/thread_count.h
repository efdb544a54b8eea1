// The number of threads that OMP_NUM_THREADS asks for, checked before anything computes.
#pragma once

#include "core/environment.h"

namespace tessera {

// Throws UsageError unless OMP_NUM_THREADS is unset, or one or more numbers of threads (`4`, `4,2`) that a host can
// start: libgomp ends the process at the first parallel loop, without a word about the variable, where it cannot start
// them.
void check_thread_count(const Environment& environment);

}  // namespace tessera
