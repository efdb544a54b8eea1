#include "parallel/recorded_step.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "comm/flight_recorder.h"
#include "core/text.h"
#include "model/run_modes.h"
#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"

namespace tessera {
namespace {

EngineOptions options_of(const Step& step) {
  EngineOptions options;
  options.spread = SpreadOptions{.strategy = step.strategy,
                                 .offload_optimizer = step.offload_optimizer,
                                 .offload_parameters = step.offload_parameters};
  options.host_memory_is_separate = step.offload_optimizer || step.offload_parameters;
  options.types = {step.compute, step.reduce, step.num_micro_steps > 1};
  options.spread.forward_prefetch = step.forward_prefetch;
  options.spread.backward_prefetch = step.backward_prefetch;
  return options;
}

std::vector<Call> calls_after(const FlightRecorder& recorder, std::uint64_t last_id, const Placement& row) {
  const std::map<std::string, std::string> names{
      {"all_gather", "gather"}, {"reduce_scatter", "reduce"}, {"all_reduce", "add across nodes"}};
  std::vector<Call> calls;
  for (const FlightEntry& entry : recorder.entries()) {
    if (entry.id <= last_id) continue;
    const bool is_second_copy = row.keeps_second_copy() && entry.group != "world" && entry.operation == "all_gather";
    calls.push_back({is_second_copy ? "gather in the node" : names.at(entry.operation), entry.unit, entry.bytes});
  }
  return calls;
}

class StepTrainer {
 public:
  StepTrainer(World& world, const Step& step)
      : step_(step),
        model_(step.num_blocks),
        engine_(world, model_, model_.units(), options_of(step)),
        checkpoints_(engine_),
        ids_(at::arange(8) + world.rank()) {}

  void run() {
    if (step_.is_evaluation) {
      const at::NoGradGuard evaluation;
      forward();
      return;
    }
    const UpdateArguments arguments{.learning_rate = 1e-3};
    for (int i = 0; i < step_.num_micro_steps; ++i) {
      const bool is_last = i + 1 == step_.num_micro_steps;
      const at::Tensor loss = forward();
      if (is_last && step_.updates_during_backward) optimizer_.update_during_backward(arguments);
      engine_.backward(loss, is_last);
    }
    optimizer_.update(arguments);
  }

 private:
  at::Tensor forward() {
    const auto pass = engine_.forward();
    return model_.loss(ids_, ids_ + 1, step_.checkpointed ? static_cast<UnitRunner&>(checkpoints_) : engine_);
  }

  const Step& step_;
  SmallModel model_;
  Engine engine_;
  CheckpointRunner checkpoints_;
  ShardedOptimizer optimizer_{engine_, choose_optimizer("adamw")};
  at::Tensor ids_;
};

// The layouts of the model's units under the step's engine, by name.
std::map<std::string, FlatLayout> layouts_of(const Step& step, int num_shards) {
  std::map<std::string, FlatLayout> layouts;
  run_thread_ranks(1, {}, [&](World& world) {
    SmallModel model(step.num_blocks);
    EngineOptions options;
    options.spread.strategy = "single";
    Engine engine(world, model, model.units(), options);
    for (const FlatUnit& unit : engine.units()) {
      std::vector<FlatLayout::Entry> entries;
      for (const FlatSlot& slot : unit.layout().slots()) entries.push_back({slot.name, slot.shape});
      layouts.emplace(unit.name(), FlatLayout(entries, num_shards));
    }
  });
  return layouts;
}

}  // namespace

std::vector<Call> record(const Step& step) {
  std::vector<std::vector<Call>> calls_of_rank(static_cast<std::size_t>(step.num_ranks));
  WorldOptions options;
  options.ranks_per_node = step.ranks_per_node;
  run_thread_ranks(step.num_ranks, options, [&](World& world) {
    StepTrainer trainer(world, step);
    trainer.run();
    const std::vector<FlightEntry> before = world.recorder().entries();
    trainer.run();
    calls_of_rank[static_cast<std::size_t>(world.rank())] =
        calls_after(world.recorder(), before.empty() ? 0 : before.back().id, placement_of(step.strategy));
  });
  for (std::size_t rank = 1; rank < calls_of_rank.size(); ++rank) {
    EXPECT_EQ(calls_of_rank[rank], calls_of_rank[0]) << step.strategy << ": rank " << rank;
  }
  return calls_of_rank[0];
}

std::string in_order(const std::vector<Call>& calls) {
  std::vector<std::string> names;
  for (const Call& call : calls) names.push_back(call.name());
  return join(names, "; ");
}

std::int64_t expected_bytes(const Step& step, const Call& call) {
  const Placement placement = placement_of(step.strategy);
  const int num_shards = placement.reduced_over() == Over::kNode ? step.ranks_per_node : step.num_ranks;
  const std::map<std::string, FlatLayout> layouts = layouts_of(step, num_shards);
  if (call.unit == "gradient norm") {
    // One float64 sum of squares per block, and one number for the order of the gathers.
    std::int64_t num_blocks = 0;
    for (const auto& [name, layout] : layouts) num_blocks += layout.shard_blocks();
    return (num_blocks + 1) * num_shards * 8;
  }
  const FlatLayout& layout = layouts.at(call.unit);
  const auto size_of = [](at::ScalarType type) { return static_cast<std::int64_t>(c10::elementSize(type)); };
  if (call.what == "add across nodes") return layout.shard_numel() * size_of(step.reduce);
  // If the optimizer is whole, the gather after a reduction carries the sums; all other gathers carry parameters.
  const bool carries_gradients = call.what == "reduce" || !placement.optimizer.is_split();
  return layout.padded_numel() * size_of(carries_gradients ? step.reduce : step.compute);
}

}  // namespace tessera
