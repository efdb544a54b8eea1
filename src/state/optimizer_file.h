// An optimizer's file: its states and, in the metadata, the number of updates and the state of the loss scale.
//
// Collective, between steps; only rank 0 touches the file (unit_file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "parallel/train_step.h"
#include "state/unit_file.h"

namespace tessera {

// What an optimizer's state is besides tensors, by name: its number of updates and the state of the loss scale.
std::map<std::string, double> progress_numbers(const TrainStep& step);

void write_optimizer_file(const SpreadModel& spread, const TrainStep& step, const std::filesystem::path& file);

struct OptimizerProgress {
  std::int64_t num_updates = 0;
  LossScaler::State scale;  // the step's own if the file's run had another type and no scale
};

// The reverse; `number` gives a named number if it is stored. Throws UsageError naming `origin` without a number of
// updates.
OptimizerProgress progress_of(const TrainStep& step, const std::string& origin,
                              const std::function<std::optional<double>(const std::string&)>& number);

// Reads the states into the optimizer and returns the rest, the same on every rank.
OptimizerProgress read_optimizer_file(const SpreadModel& spread, const TrainStep& step,
                                      const std::filesystem::path& file);

}  // namespace tessera
