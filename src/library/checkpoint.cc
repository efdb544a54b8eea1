#include "tessera/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "checkpoint/load_weights.h"
#include "core/error.h"
#include "library/agreement.h"
#include "library/optimizer_impl.h"
#include "library/unit_file.h"
#include "library/weights_file.h"

namespace tessera {
namespace {

constexpr const char* kNumUpdates = "tessera.num_updates";
constexpr const char* kLossScale = "tessera.loss_scale";
constexpr const char* kNumCleanSteps = "tessera.num_clean_steps";

void check_ready(const Sharded::Impl& sharded, const char* call) {
  sharded.check_idle(call);
  sharded.watch.check();
  if (sharded.num_passes + sharded.num_losses == 0) return;
  throw UsageError(
      fmt::format("{} was called within a step: call it after Optimizer::step (and evaluate under "
                  "torch::NoGradGuard)",
                  call));
}

SpreadModel spread_of(Sharded::Impl& sharded) {
  return {sharded.world, *sharded.engine, sharded.model,
          [&sharded](const char* call, const std::function<void()>& work) { sharded.guarded(call, work); }};
}

// What rank 0 has read, to all.
double tell(World& world, double number) {
  const at::Tensor told = at::tensor({number}, at::kDouble).to(world.device());
  world.all().broadcast(told.view(at::kLong), 0, "optimizer")->wait();
  return told.item<double>();
}

}  // namespace

void save_weights(Sharded& sharded, const std::filesystem::path& file) {
  Sharded::Impl& impl = sharded.impl();
  check_ready(impl, "save_weights");
  impl.guarded("save_weights", [&] { impl.make_buffers_alike(); });
  write_weights_file(spread_of(impl), file);
}

void load_weights(Sharded& sharded, const std::filesystem::path& file) {
  Sharded::Impl& impl = sharded.impl();
  check_ready(impl, "load_weights");
  read_weights_file(spread_of(impl), file);
}

void load_weights(torch::nn::Module& module, const std::filesystem::path& file) {
  const Weights weights = Weights::open(file);
  LoadOptions options;
  options.ties = weights.ties();
  load_weights(module, weights, options);
}

void save_optimizer(Optimizer& optimizer, const std::filesystem::path& file) {
  Optimizer::Impl& impl = optimizer.impl();
  Sharded::Impl& sharded = impl.sharded;
  check_ready(sharded, "save_optimizer");
  const std::vector<FlatState> states = moments_of(*sharded.engine, impl.optimizer);
  std::map<std::string, std::string> metadata{{kNumUpdates, fmt::to_string(impl.optimizer.num_updates())}};
  if (sharded.scaler) {
    metadata.emplace(kLossScale, fmt::to_string(sharded.scaler->state().scale));
    metadata.emplace(kNumCleanSteps, fmt::to_string(sharded.scaler->state().num_clean_steps));
  }
  std::optional<StateWriter> writer;  // rank 0's
  on_first_rank(sharded.world, [&] { writer.emplace(file, describe(spread_of(sharded), states), metadata); });
  write_units(spread_of(sharded), states, writer);
  on_first_rank(sharded.world, [&] { writer->finish(); });
}

void load_optimizer(Optimizer& optimizer, const std::filesystem::path& file) {
  Optimizer::Impl& impl = optimizer.impl();
  Sharded::Impl& sharded = impl.sharded;
  World& world = sharded.world;
  check_ready(sharded, "load_optimizer");
  const std::vector<FlatState> states = moments_of(*sharded.engine, impl.optimizer);
  std::optional<StateReader> reader;  // rank 0's
  double num_updates = 0;
  LossScaler::State scale;
  if (sharded.scaler) scale = sharded.scaler->state();
  on_first_rank(world, [&] {
    reader.emplace(file, describe(spread_of(sharded), states), "optimizer's state does");
    num_updates = reader->number(kNumUpdates);
    if (!sharded.scaler) return;
    // A file of a run in another type has none: the scale stays what it is.
    scale.scale = reader->number(kLossScale, scale.scale);
    scale.num_clean_steps =
        static_cast<std::int64_t>(reader->number(kNumCleanSteps, static_cast<double>(scale.num_clean_steps)));
  });
  read_units(spread_of(sharded), states, reader);
  sharded.guarded("load_optimizer", [&] {
    impl.optimizer.set_num_updates(static_cast<std::int64_t>(tell(world, num_updates)));
    if (!sharded.scaler) return;
    scale.scale = tell(world, scale.scale);
    scale.num_clean_steps = static_cast<std::int64_t>(tell(world, static_cast<double>(scale.num_clean_steps)));
    sharded.scaler->set_state(scale);
  });
}

}  // namespace tessera
