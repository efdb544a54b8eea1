// All threads of the engine at work at once, briefly: ranks, hooks, reductions, the worker of offloaded updates. Made
// for the thread sanitizer; the result must not depend on which thread computes it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"
#include "parallel_faults/ranks.h"

namespace tessera {
namespace {

struct Run {
  std::string strategy = "zero2";
  bool offload_parameters = false;
  HostUpdates updates = HostUpdates::kInBackground;
  bool during_backward = false;
};

// Rank 0's masters after three steps on four ranks in two nodes.
std::vector<at::Tensor> masters_after(const Run& run) {
  std::vector<at::Tensor> masters;
  WorldOptions world_options;
  world_options.ranks_per_node = 2;
  world_options.comm_timeout = std::chrono::seconds(60);
  run_thread_ranks(4, world_options, [&](World& world) {
    SmallModel model(2);
    EngineOptions options;
    options.spread = SpreadOptions{
        .strategy = run.strategy, .offload_optimizer = true, .offload_parameters = run.offload_parameters};
    options.host_memory_is_separate = true;
    Engine engine(world, model, model.units(), options);
    ShardedOptimizer optimizer(engine, choose_optimizer("adamw"), run.updates);
    const at::Tensor ids = at::arange(8) + world.rank();
    for (int step = 0; step < 3; ++step) {
      at::Tensor loss;
      {
        const auto pass = engine.forward();
        loss = model.loss(ids, ids + 1, engine);
      }
      if (run.during_backward) optimizer.update_during_backward({.learning_rate = 1e-2});
      engine.backward(loss);
      optimizer.update({.learning_rate = 1e-2});
    }
    for (FlatUnit& unit : engine.units()) {
      unit.finish_update();
      if (world.rank() == 0) masters.push_back(unit.master().clone());
    }
  });
  return masters;
}

TEST(Threads, UpdatesInTheBackgroundAndDuringBackwardGiveTheSameBits) {
  for (const auto& [strategy, offload_parameters] :
       {std::pair{"zero2", false}, {"full_shard", false}, {"full_shard", true}, {"hybrid_shard", true}}) {
    const std::vector<at::Tensor> expected = masters_after({strategy, offload_parameters, HostUpdates::kAtOnce});
    for (const bool during_backward : {false, true}) {
      const std::vector<at::Tensor> found =
          masters_after({strategy, offload_parameters, HostUpdates::kInBackground, during_backward});
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_TRUE(at::equal(found[i], expected[i])) << strategy << " unit " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
