// The results of runs in one folder that can be taken home: records, logs and scripts, without weights. (no torch)
#pragma once

#include <filesystem>
#include <vector>

#include "experiment/run_folder.h"

namespace tessera {

// Copies each run to TARGET/EXPERIMENT/NNN. Files of a run that goes on are copied as they are. Throws Error with path
// and reason.
void collect(const std::vector<StoredRun>& runs, const std::filesystem::path& target);

}  // namespace tessera
