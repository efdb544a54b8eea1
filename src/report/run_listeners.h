// Who listens to a run of `tessera train`.
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

// Of the run that this one resumes.
struct RunHistory {
  std::vector<LogRecord> records;
  std::optional<std::int64_t> step_in_folder;  // where that run's files are those that are continued
};

// Rank 0 writes all reports; every rank has its log, and meters what it uses of its device, which the caller adds to
// the summary. Collective.
std::shared_ptr<UtilisationMeter> add_listeners(const LoadedTrainSettings& run, World& world, const RunHistory& history,
                                                Console& console, Listeners& listeners);

}  // namespace tessera
