// Which collectives each strategy calls, in which order: from the flight recorder.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "comm/flight_recorder.h"
#include "core/text.h"
#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"

namespace tessera {
namespace {

struct Step {
  std::string strategy = "ddp";
  int num_ranks = 2;
  int ranks_per_node = 0;
  int num_micro_steps = 1;
};

// "gather block_0", one a line, of the second step on rank 0: the first has nothing on its way from before.
std::string collectives_of(const Step& step) {
  const std::map<std::string, std::string> names{
      {"all_gather", "gather"}, {"reduce_scatter", "reduce"}, {"all_reduce", "add across nodes"}};
  std::vector<std::string> lines;
  WorldOptions options;
  options.ranks_per_node = step.ranks_per_node;
  run_thread_ranks(step.num_ranks, options, [&](World& world) {
    SmallModel model(2);
    EngineOptions engine_options;
    engine_options.placement = placement_of(step.strategy);
    engine_options.types.accumulates = step.num_micro_steps > 1;
    Engine engine(world, model, model.units(), engine_options);
    ShardedOptimizer optimizer(engine, kernels::AdamW{});
    const at::Tensor ids = at::arange(8) + world.rank();
    std::size_t num_before = 0;
    for (int update = 0; update < 2; ++update) {
      num_before = world.recorder().entries().size();
      for (int i = 0; i < step.num_micro_steps; ++i) {
        at::Tensor loss;
        {
          const auto pass = engine.forward();
          loss = model.loss(ids, ids + 1, engine);
        }
        engine.backward(loss, i + 1 == step.num_micro_steps);
      }
      optimizer.update({.learning_rate = 1e-3});
    }
    const std::vector<FlightEntry> entries = world.recorder().entries();
    for (std::size_t i = num_before; world.rank() == 0 && i < entries.size(); ++i) {
      lines.push_back(fmt::format("{} {}", names.at(entries[i].operation), entries[i].unit));
    }
  });
  return join(lines, "; ");
}

TEST(Collectives, FullShardGathersTwiceAndReducesOnce) {
  for (const std::string strategy : {"full_shard", "zero3"}) {
    EXPECT_EQ(collectives_of({.strategy = strategy}),
              "gather root; gather block_0; gather block_1; "  // block_1, the last, stays for backward
              "gather block_0; reduce block_1; reduce block_0; reduce root; gather gradient norm");
  }
}

TEST(Collectives, ShardGradOpGathersOnceAndReducesOnce) {
  EXPECT_EQ(collectives_of({.strategy = "shard_grad_op"}),
            "gather root; gather block_0; gather block_1; "
            "reduce block_1; reduce block_0; reduce root; gather gradient norm");
}

TEST(Collectives, Zero1And2ReduceAndHandTheUpdatedPartsRound) {
  for (const std::string strategy : {"zero1", "zero2"}) {
    EXPECT_EQ(collectives_of({.strategy = strategy}),
              "reduce block_1; reduce block_0; reduce root; gather gradient norm; "
              "gather block_0; gather block_1; gather root");
  }
}

TEST(Collectives, DdpReducesAndHandsTheSumsRound) {
  for (const std::string strategy : {"ddp", "zero0", "no_shard"}) {
    EXPECT_EQ(collectives_of({.strategy = strategy}),
              "reduce block_1; gather block_1; reduce block_0; gather block_0; reduce root; gather root");
  }
}

TEST(Collectives, HybridAddsShardsAcrossNodesWhileTheNextUnitReduces) {
  EXPECT_EQ(collectives_of({.strategy = "hybrid_shard", .num_ranks = 4, .ranks_per_node = 2}),
            "gather root; gather block_0; gather block_1; gather block_0; reduce block_1; reduce block_0; "
            "add across nodes block_1; reduce root; add across nodes block_0; add across nodes root; "
            "gather gradient norm");
}

TEST(Collectives, WholeGradientsAreReducedInTheLastMicroStepOnly) {
  EXPECT_EQ(collectives_of({.strategy = "zero1", .num_micro_steps = 3}),
            "reduce block_1; reduce block_0; reduce root; gather gradient norm; "
            "gather block_0; gather block_1; gather root");
  EXPECT_EQ(collectives_of({.strategy = "zero2", .num_micro_steps = 2}),
            "reduce block_1; reduce block_0; reduce root; reduce block_1; reduce block_0; reduce root; "
            "gather gradient norm; gather block_0; gather block_1; gather root");
}

TEST(Collectives, OneRankCallsNone) {
  for (const std::string strategy : {"single", "ddp", "zero2", "full_shard"}) {
    EXPECT_EQ(collectives_of({.strategy = strategy, .num_ranks = 1}), "") << strategy;
  }
}

}  // namespace
}  // namespace tessera
