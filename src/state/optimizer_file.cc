#include "state/optimizer_file.h"

#include <fmt/format.h>

#include <map>

#include "comm/exchange.h"

namespace tessera {
namespace {

constexpr const char* kNumUpdates = "tessera.num_updates";
constexpr const char* kLossScale = "tessera.loss_scale";
constexpr const char* kNumCleanSteps = "tessera.num_clean_steps";
constexpr const char* kHysteresis = "tessera.hysteresis";

}  // namespace

void write_optimizer_file(const SpreadModel& spread, const TrainStep& step, const std::filesystem::path& file) {
  const std::vector<FlatState> states = optimizer_states_of(spread.engine, step.optimizer());
  std::map<std::string, std::string> metadata{{kNumUpdates, fmt::to_string(step.optimizer().num_updates())}};
  if (step.scaler() != nullptr) {
    const LossScaler::State& scale = step.scaler()->state();
    metadata.emplace(kLossScale, fmt::to_string(scale.scale));
    metadata.emplace(kNumCleanSteps, fmt::to_string(scale.num_clean_steps));
    metadata.emplace(kHysteresis, fmt::to_string(scale.hysteresis));
  }
  std::optional<StateWriter> writer;  // rank 0's
  on_first_rank(spread.world, [&] { writer.emplace(file, describe(spread, states), metadata); });
  write_units(spread, states, writer);
  on_first_rank(spread.world, [&] { writer->finish(); });
}

OptimizerProgress read_optimizer_file(const SpreadModel& spread, const TrainStep& step,
                                      const std::filesystem::path& file) {
  const LossScaler::State scale = step.scaler() != nullptr ? step.scaler()->state() : LossScaler::State();
  const std::vector<FlatState> states = optimizer_states_of(spread.engine, step.optimizer());
  std::optional<StateReader> reader;           // rank 0's
  std::vector<double> numbers = {0, 0, 0, 0};  // the other ranks get rank 0's
  on_first_rank(spread.world, [&] {
    reader.emplace(file, describe(spread, states), "optimizer's state does");
    numbers = {reader->number(kNumUpdates), reader->number(kLossScale, scale.scale),
               reader->number(kNumCleanSteps, static_cast<double>(scale.num_clean_steps)),
               reader->number(kHysteresis, static_cast<double>(scale.hysteresis))};
  });
  read_units(spread, states, reader);
  spread.guarded("loading", [&] { numbers = numbers_of_first_rank(spread.world, numbers, "optimizer"); });
  return {static_cast<std::int64_t>(numbers[0]),
          {numbers[1], static_cast<std::int64_t>(numbers[2]), static_cast<std::int64_t>(numbers[3])}};
}

}  // namespace tessera
