// The runner (tessera-minder): one small process per rank that starts the rank, passes signals and output between it
// and the launcher, and reports how it ended.
//
// It reads the order in the run folder, connects to the launcher through the socket there and waits for "begin". It
// then forks the rank into its own process group, pins it, passes on signals and output, and ends it when told to, or
// when the launcher is gone. When the rank ends, the runner also ends everything it left running.
//
// Packets from the runner: {"is":"hello", "local_rank", "pid"}, {"is":"started", "pid"},
// {"is":"ended", "end": what it knows of the RankEnd, "starter_died_ms"}.
// Packets to it: {"do":"begin", "secret"} with the launcher's stdout and stderr, {"do":"signal", "signal"},
// {"do":"stop", "grace_ms"}: SIGTERM now, SIGKILL after the grace.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// `args`: the run folder, and the local rank unless mpirun's variable gives it. Returns the exit status: the rank's, or
// 128 + signal.
int run_rank_runner(const std::vector<std::string>& args);

}  // namespace tessera
