// An imported run as one command, for users who do not want the catalogue. (no torch)
#pragma once

#include <filesystem>
#include <string>

#include "experiment/import/imported_settings.h"
#include "experiment/resolved.h"

namespace tessera {

// `export` lines, then `tessera train`, `tessera launch ... train` or, on several nodes, `srun ... tessera train`.
// `catalogue` is the folder in which the experiment's files lie.
std::string plain_command(const ImportedSettings& settings, const ResolvedExperiment& experiment,
                          const std::filesystem::path& catalogue);

}  // namespace tessera
