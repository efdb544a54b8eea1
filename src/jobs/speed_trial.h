// How fast a run will be, tried out: for --predict_speed. What depends on the machine (products, the link to the host,
// its updates, collectives) is measured by the run's own steps, not calculated.
#pragma once

#include <cstdint>
#include <functional>

#include "settings/train_settings.h"
#include "tessera/unit.h"
#include "tessera/world.h"
#include "train/task.h"

namespace tessera {

struct TrialLength {
  std::int64_t uncounted = 4;  // updates that load kernels, choose products and fill caches
  std::int64_t counted = 8;
};

// Seconds of an update, from a few of them with these settings; no log, evaluation or file. Changes the task's model.
// Collective.
double tried_seconds(World& world, TrainTask& task, TrainSettings settings, const ParameterSource& first_values,
                     const TrialLength& length = {});

// Blocks of a model that are on the rank's device with everything, and those of which something is offloaded.
struct BlockCounts {
  std::int64_t on_device = 0, on_host = 0;

  bool operator==(const BlockCounts&) const = default;
};

// Seconds of an update of a model with these blocks, from a trial of that length.
using BlockTrial = std::function<double(const BlockCounts&, const TrialLength&)>;

// Seconds of an update of the whole model, from models with fewer blocks: what one block of a kind adds, every other of
// that kind is taken to add. The first trial counts for nothing but the length of the others: the first updates of a
// process are slower than those of every later model.
double extrapolated_seconds(const BlockCounts& whole, const BlockTrial& tried);

}  // namespace tessera
