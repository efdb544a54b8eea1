// An optimizer's file: its states, and in the metadata the number of updates and the state of a loss scale.
//
// Collective, between steps; as unit_file.h says, only rank 0 touches the file.
#pragma once

#include <cstdint>
#include <filesystem>

#include "parallel/train_step.h"
#include "state/unit_file.h"

namespace tessera {

void write_optimizer_file(const SpreadModel& spread, const TrainStep& step, const std::filesystem::path& file);

struct OptimizerProgress {
  std::int64_t num_updates = 0;
  LossScaler::State scale;  // the step's own where the file is of a run in another type and has none
};

// The states go into the optimizer; the rest is for the caller, the same on every rank.
OptimizerProgress read_optimizer_file(const SpreadModel& spread, const TrainStep& step,
                                      const std::filesystem::path& file);

}  // namespace tessera
