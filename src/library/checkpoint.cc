#include "tessera/checkpoint.h"

#include <fmt/format.h>

#include "core/error.h"
#include "library/shard_impl.h"
#include "state/unit_file.h"
#include "weights/load_weights.h"

namespace tessera {
namespace {

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
  return {sharded.world, sharded.step.engine(), sharded.model,
          [&sharded](const char* call, const std::function<void()>& work) { sharded.guarded(call, work); }};
}

}  // namespace

void save_weights(Sharded& sharded, const std::filesystem::path& file) {
  Sharded::Impl& impl = sharded.impl();
  check_ready(impl, "save_weights");
  impl.guarded("save_weights", [&] { impl.sync_buffers(); });
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
  write_optimizer_file(spread_of(sharded), sharded.step, file);
}

void load_optimizer(Optimizer& optimizer, const std::filesystem::path& file) {
  Optimizer::Impl& impl = optimizer.impl();
  Sharded::Impl& sharded = impl.sharded;
  check_ready(sharded, "load_optimizer");
  const OptimizerProgress read = read_optimizer_file(spread_of(sharded), sharded.step, file);
  sharded.step.optimizer().set_num_updates(read.num_updates);
  if (sharded.step.scaler() != nullptr) sharded.step.scaler()->set_state(read.scale);
}

}  // namespace tessera
