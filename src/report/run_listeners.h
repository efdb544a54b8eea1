// The listeners of a run of `tessera train`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "monitor/utilisation.h"
#include "report/console.h"
#include "settings/load.h"
#include "tessera/world.h"
#include "train/listener.h"

namespace tessera {

// The history of the run that this one resumes.
struct RunHistory {
  std::vector<LogRecord> records;
  std::optional<std::int64_t> step_in_folder;  // if this run continues that run's files
};

// Rank 0 writes all reports. Every rank writes its log and measures the use of its device, which the caller adds to the
// summary. Collective.
std::shared_ptr<UtilisationMeter> add_listeners(const LoadedTrainSettings& run, World& world, const RunHistory& history,
                                                Console& console, Listeners& listeners);

}  // namespace tessera
