// `tessera analyze-memory JOB_ID|FILES...`: peak, average and mode of memory logs, ours, nvidia-smi's and psrecord's.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// What follows `tessera analyze-memory`. Returns the exit status: 1 if no log could be read.
int run_analyze_memory(const std::vector<std::string>& args);

}  // namespace tessera
