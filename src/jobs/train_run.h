// Around the loop of every job: signals, and the end of a run told to whoever listens.
#pragma once

#include <functional>

#include "report/train_reports.h"
#include "tessera/world.h"
#include "train/listener.h"
#include "train/trainer.h"

namespace tessera {

// trainer.run(), then unless a signal has stopped it `save` (the best model, its folder) and `after` (its answers; left
// out where a signal has come since). Tells the listeners how it ended. Returns the exit status: 0, or 128 + signal of
// a run that has not reached its last step. Collective. Throws OutputError at the end of a run whose lines could not be
// printed.
int run_to_end(World& world, const TrainRun& run, Trainer& trainer, Console& console, Listeners& listeners,
               const std::function<void()>& save, const std::function<void()>& after);

}  // namespace tessera
