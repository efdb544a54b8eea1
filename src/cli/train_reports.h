// What `tessera train` was called with, and who hears of the run.
#pragma once

#include <string>
#include <vector>

#include "core/environment.h"
#include "tessera/world.h"
#include "train/console.h"
#include "train/listener.h"
#include "train/settings/load.h"

namespace tessera {

struct TrainRun {
  const LoadedTrainSettings& loaded;
  const std::vector<std::string>& args;
  const Environment& environment;
  const TrainSettings& settings() const { return loaded.settings; }
};

// Rank 0's; the others have none. `history`: of the run that this one goes on with.
void add_listeners(const TrainRun& run, const World& world, const std::vector<LogRecord>& history, Console& console,
                   Listeners& listeners);

}  // namespace tessera
