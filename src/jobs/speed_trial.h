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

// Seconds of an update, from a few of them with these settings; no log, evaluation or file. Changes the task's model.
// Collective.
double tried_seconds(World& world, TrainTask& task, TrainSettings settings, const ParameterSource& first_values);

// Blocks of a model whose optimizer is on the rank's device or, with offload, on the host.
struct BlockCounts {
  std::int64_t on_device = 0, on_host = 0;

  bool operator==(const BlockCounts&) const = default;
};

// Of an update of a model with so many blocks, from models with fewer: what is added by a block is the same for each of
// its kind.
double extrapolated_seconds(const BlockCounts& whole, const std::function<double(const BlockCounts&)>& tried);

}  // namespace tessera
