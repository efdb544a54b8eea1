// An optimizer's file: its states and, in the metadata, the number of updates and the state of the loss scale.
//
// Collective, between steps; only rank 0 touches the file (unit_file.h).
#pragma once

#include <cstdint>
#include <filesystem>

#include "parallel/train_step.h"
#include "state/unit_file.h"

namespace tessera {

void write_optimizer_file(const SpreadModel& spread, const TrainStep& step, const std::filesystem::path& file);

struct OptimizerProgress {
  std::int64_t num_updates = 0;
  LossScaler::State scale;  // the step's own if the file's run had another type and no scale
};

// Reads the states into the optimizer and returns the rest, the same on every rank.
OptimizerProgress read_optimizer_file(const SpreadModel& spread, const TrainStep& step,
                                      const std::filesystem::path& file);

}  // namespace tessera
