#include "state/optimizer_file.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <map>

#include "comm/exchange.h"

namespace tessera {
namespace {

constexpr const char* kNumUpdates = "tessera.num_updates";
constexpr const char* kLossScale = "tessera.loss_scale";
constexpr const char* kNumCleanSteps = "tessera.num_clean_steps";
constexpr const char* kHysteresis = "tessera.hysteresis";

// What rank 0 has read, to all. As integers: a sum or a copy of doubles in between might change bits.
std::vector<double> tell(World& world, const std::vector<double>& numbers) {
  const at::Tensor told = at::tensor(numbers, at::kDouble).to(world.device());
  world.all().broadcast(told.view(at::kLong), 0, "optimizer")->wait();
  const at::Tensor here = told.cpu();
  return {here.const_data_ptr<double>(), here.const_data_ptr<double>() + here.numel()};
}

}  // namespace

void write_optimizer_file(const SpreadModel& spread, const ShardedOptimizer& optimizer, const LossScaler* scaler,
                          const std::filesystem::path& file) {
  const std::vector<FlatState> states = moments_of(spread.engine, optimizer);
  std::map<std::string, std::string> metadata{{kNumUpdates, fmt::to_string(optimizer.num_updates())}};
  if (scaler != nullptr) {
    const LossScaler::State& scale = scaler->state();
    metadata.emplace(kLossScale, fmt::to_string(scale.scale));
    metadata.emplace(kNumCleanSteps, fmt::to_string(scale.num_clean_steps));
    metadata.emplace(kHysteresis, fmt::to_string(scale.hysteresis));
  }
  std::optional<StateWriter> writer;  // rank 0's
  on_first_rank(spread.world, [&] { writer.emplace(file, describe(spread, states), metadata); });
  write_units(spread, states, writer);
  on_first_rank(spread.world, [&] { writer->finish(); });
}

OptimizerNumbers read_optimizer_file(const SpreadModel& spread, const ShardedOptimizer& optimizer,
                                     const LossScaler::State& scale, const std::filesystem::path& file) {
  const std::vector<FlatState> states = moments_of(spread.engine, optimizer);
  std::optional<StateReader> reader;           // rank 0's
  std::vector<double> numbers = {0, 0, 0, 0};  // the others have none and get rank 0's
  on_first_rank(spread.world, [&] {
    reader.emplace(file, describe(spread, states), "optimizer's state does");
    numbers = {reader->number(kNumUpdates), reader->number(kLossScale, scale.scale),
               reader->number(kNumCleanSteps, static_cast<double>(scale.num_clean_steps)),
               reader->number(kHysteresis, static_cast<double>(scale.hysteresis))};
  });
  read_units(spread, states, reader);
  spread.guarded("loading", [&] { numbers = tell(spread.world, numbers); });
  return {static_cast<std::int64_t>(numbers[0]),
          {numbers[1], static_cast<std::int64_t>(numbers[2]), static_cast<std::int64_t>(numbers[3])}};
}

}  // namespace tessera
