#include "state/optimizer_file.h"

#include <fmt/format.h>

#include <map>

#include "comm/exchange.h"
#include "core/error.h"
#include "weights/checkpoint_index.h"

namespace tessera {
namespace {

constexpr const char* kMetadataPrefix = "tessera.";

}  // namespace

std::map<std::string, double> progress_numbers(const TrainStep& step) {
  std::map<std::string, double> numbers{{kNumUpdates, static_cast<double>(step.optimizer().num_updates())}};
  if (step.scaler() == nullptr) return numbers;
  const LossScaler::State& scale = step.scaler()->state();
  numbers[kLossScale] = scale.scale;
  numbers[kNumCleanSteps] = static_cast<double>(scale.num_clean_steps);
  numbers[kHysteresis] = static_cast<double>(scale.hysteresis);
  return numbers;
}

OptimizerProgress progress_of(const TrainStep& step, const std::string& origin,
                              const std::function<std::optional<double>(const std::string&)>& number) {
  OptimizerProgress progress;
  if (step.scaler() != nullptr) progress.scale = step.scaler()->state();
  const auto num_updates = number(kNumUpdates);
  if (!num_updates) throw UsageError(fmt::format("{}: the optimizer's {} is missing", origin, kNumUpdates));
  progress.num_updates = static_cast<std::int64_t>(*num_updates);
  if (const auto scale = number(kLossScale)) progress.scale.scale = *scale;
  if (const auto steps = number(kNumCleanSteps)) progress.scale.num_clean_steps = static_cast<std::int64_t>(*steps);
  if (const auto left = number(kHysteresis)) progress.scale.hysteresis = static_cast<std::int64_t>(*left);
  return progress;
}

void write_optimizer_file(const SpreadModel& spread, const TrainStep& step, const std::filesystem::path& file) {
  const std::vector<FlatState> states = optimizer_states_of(spread.engine, step.optimizer());
  std::map<std::string, std::string> metadata;
  for (const auto& [name, number] : progress_numbers(step)) metadata[kMetadataPrefix + name] = fmt::to_string(number);
  std::optional<StateWriter> writer;  // rank 0's
  on_first_rank(spread.world, [&] { writer.emplace(file, spread.world.device(), describe(spread, states), metadata); });
  write_units(spread, states, writer);
  on_first_rank(spread.world, [&] { writer->finish(); });
}

OptimizerProgress read_optimizer_file(const SpreadModel& spread, const TrainStep& step,
                                      const std::filesystem::path& file) {
  const std::vector<FlatState> states = optimizer_states_of(spread.engine, step.optimizer());
  std::optional<StateReader> reader;  // rank 0's
  OptimizerProgress progress;
  on_first_rank(spread.world, [&] {
    reader.emplace(file, describe(spread, states), "optimizer's state does");
    progress = progress_of(step, file.string(),
                           [&](const std::string& name) { return reader->number(kMetadataPrefix + name); });
  });
  read_units(spread, states, reader);
  // The other ranks get rank 0's.
  std::vector<double> numbers = {static_cast<double>(progress.num_updates), progress.scale.scale,
                                 static_cast<double>(progress.scale.num_clean_steps),
                                 static_cast<double>(progress.scale.hysteresis)};
  spread.guarded("loading", [&] { numbers = numbers_of_first_rank(spread.world, numbers, "optimizer"); });
  return {static_cast<std::int64_t>(numbers[0]),
          {numbers[1], static_cast<std::int64_t>(numbers[2]), static_cast<std::int64_t>(numbers[3])}};
}

}  // namespace tessera
