// What `tessera train` was called with, and who hears of the run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "monitor/utilisation.h"
#include "tessera/world.h"
#include "report/console.h"
#include "train/listener.h"
#include "settings/load.h"

namespace tessera {

struct TrainRun {
  const LoadedTrainSettings& loaded;
  const std::vector<std::string>& args;
  const Environment& environment;
  const TrainSettings& settings() const { return loaded.settings; }
};

// Of the run that this one goes on with.
struct RunHistory {
  std::vector<LogRecord> records;
  std::optional<std::int64_t> step_in_folder;  // where that run's files are those that are continued
};

// All reports are rank 0's; every rank has its log, and counts what it uses of its device: what the caller asks for the
// summary. Collective.
std::shared_ptr<UtilisationMeter> add_listeners(const TrainRun& run, World& world, const RunHistory& history,
                                                Console& console, Listeners& listeners);

}  // namespace tessera
