// The minder: one small process a rank that starts it, stands between it and the world, and tells how it ended.
//
// It reads the order in the run folder, reports to the launcher on the line there and waits for the word to begin. It
// then forks the rank into a process group of its own, pins it, passes signals and output on, and ends it when told,
// or when the launcher is gone. When the rank ends, whatever it left running ends too.
//
// Packets from the minder: {"is":"hello", "local_rank", "pid"}, {"is":"started", "pid"},
// {"is":"ended", "exit_status", "signal", "time_ms", "was_told_to_stop", "note"}.
// Packets to it: {"do":"begin"} with the launcher's stdout and stderr, {"do":"signal", "signal"},
// {"do":"stop", "grace_ms"}: SIGTERM now, SIGKILL after the grace.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// `args`: the run folder, and the local rank unless mpirun's variable gives it. Returns the exit status: the rank's, or
// 128 + signal.
int run_minder(const std::vector<std::string>& args);

}  // namespace tessera
