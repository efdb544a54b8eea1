// An optimizer's file: its moments, and in the metadata the number of updates and the state of a loss scale.
//
// Collective, between steps; as unit_file.h says, only rank 0 touches the file.
#pragma once

#include <cstdint>
#include <filesystem>

#include "state/unit_file.h"
#include "parallel/loss_scale.h"

namespace tessera {

// `scaler` may be null.
void write_optimizer_file(const SpreadModel& spread, const ShardedOptimizer& optimizer, const LossScaler* scaler,
                          const std::filesystem::path& file);

struct OptimizerNumbers {
  std::int64_t num_updates = 0;
  LossScaler::State scale;
};

// The moments go into the optimizer; the rest is for the caller, the same on every rank. `scale`: what stays where the
// file is of a run in another type and has none.
OptimizerNumbers read_optimizer_file(const SpreadModel& spread, const ShardedOptimizer& optimizer,
                                     const LossScaler::State& scale, const std::filesystem::path& file);

}  // namespace tessera
