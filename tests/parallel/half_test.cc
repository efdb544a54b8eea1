// float16 with a loss scale: all ranks find overflow and skip alike, and every row gives the same bits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parallel/loss_scale.h"
#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"

namespace tessera {
namespace {

struct HalfRun {
  std::vector<double> losses, scales;
  std::vector<bool> skipped;
  bool operator==(const HalfRun&) const = default;
};

HalfRun train_in_half(const std::string& strategy, int num_ranks) {
  HalfRun run;
  run_thread_ranks(num_ranks, {}, [&](World& world) {
    SmallModel model;
    EngineOptions options;
    options.spread.strategy = strategy;
    options.types = {at::kHalf, at::kHalf, false};
    Engine engine(world, model, model.units(), options);
    ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
    LossScaleOptions scaling;
    scaling.initial = 1 << 20;  // too large for float16 at first
    scaling.growth_interval = 4;
    LossScaler scaler(scaling);
    for (int step = 0; step < 20; ++step) {
      at::Tensor loss;
      {
        const auto pass = engine.forward();
        loss = model.loss(at::arange(8) + world.rank(), at::arange(8) + 1, engine);
      }
      engine.backward(loss * scaler.scale());
      const auto result =
          optimizer.update({.learning_rate = 1e-2, .divisor = scaler.scale() * 8 * world.size(), .max_norm = 1});
      if (world.rank() == 0) {
        run.losses.push_back(loss.item<double>());
        run.scales.push_back(scaler.scale());
        run.skipped.push_back(result.skipped);
      }
      scaler.after_step(result.skipped);
    }
    EXPECT_GT(optimizer.num_updates(), 5) << "a skipped step is no update";
    EXPECT_LT(optimizer.num_updates(), 20);
  });
  return run;
}

TEST(Half, OverflowIsSkippedAndTheScaleFollows) {
  const HalfRun run = train_in_half("ddp", 2);
  EXPECT_TRUE(run.skipped.front());
  EXPECT_EQ(run.losses[1], run.losses[0]) << "a skipped step changes nothing";
  EXPECT_EQ(run.scales[1], run.scales[0] / 2);
  EXPECT_FALSE(run.skipped.back());
  EXPECT_LT(run.losses.back(), run.losses.front());
  EXPECT_TRUE(std::adjacent_find(run.scales.begin(), run.scales.end(), std::less<>()) != run.scales.end())
      << "it grows again";
}

TEST(Half, EveryRowGivesTheSameBits) {
  const HalfRun expected = train_in_half("ddp", 3);
  for (const char* strategy : {"zero1", "zero2", "shard_grad_op", "full_shard"}) {
    EXPECT_EQ(train_in_half(strategy, 3), expected) << strategy;
  }
}

}  // namespace
}  // namespace tessera
