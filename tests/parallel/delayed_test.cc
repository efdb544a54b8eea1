// Updates that run beside the next step: one step behind, never more. A plain loop shows what that means.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"

namespace tessera {
namespace {

constexpr double kRate = 0.002, kAnew = 0.1;

EngineOptions delayed(const std::string& strategy, bool offload_parameters) {
  EngineOptions options;
  options.spread = SpreadOptions{.strategy = strategy,
                                 .offload_optimizer = true,
                                 .offload_parameters = offload_parameters,
                                 .delayed_update = true};
  options.host_memory_is_separate = true;
  return options;
}

at::Tensor ids_of(int step) {
  return (at::arange(12) * 5 + 7 * step) % SmallModel::kVocabulary;
}
at::Tensor targets_of(int step) {
  return (ids_of(step) + 1) % SmallModel::kVocabulary;
}

// Two models: the one that computes has the values of the update before the last.
class PlainLoop {
 public:
  double step(int number, double factor = 1) {
    const at::Tensor loss = used_.loss(ids_of(number), targets_of(number), runner_);
    (loss * factor).backward();
    const at::NoGradGuard no_gradients;
    const auto newest = newest_.parameters(), used = used_.parameters();
    for (std::size_t i = 0; i < used.size(); ++i) {
      used[i].copy_(newest[i]);
      at::Tensor& gradient = used[i].mutable_grad();
      if (gradient.defined() && std::isfinite(factor)) newest[i].sub_(gradient, kRate);
      gradient.reset();
    }
    return loss.item<double>();
  }
  double newest_loss(int number) {
    const at::NoGradGuard no_gradients;
    return newest_.loss(ids_of(number), targets_of(number), runner_).item<double>();
  }
  void begin_anew() {
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& parameter : newest_.parameters()) parameter.fill_(kAnew);
    use_newest();
  }
  // The step after an evaluation uses the values that were evaluated.
  void use_newest() {
    const at::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < used_.parameters().size(); ++i) used_.parameters()[i].copy_(newest_.parameters()[i]);
  }

 private:
  SmallModel used_, newest_;
  UnitRunner runner_;
};

class EngineLoop {
 public:
  EngineLoop(World& world, const EngineOptions& options, HostUpdates updates)
      : num_ranks_(world.size()),
        engine_(world, model_, model_.units(), options),
        optimizer_(engine_, choose_optimizer("sgd"), updates) {}

  double micro_step(int number, double factor = 1, bool is_last = false) {
    at::Tensor loss;
    {
      const auto pass = engine_.forward();
      loss = model_.loss(ids_of(number), targets_of(number), engine_);
    }
    engine_.backward(loss * factor, is_last);
    return loss.item<double>();
  }
  double step(int number, double factor = 1) {
    const double value = micro_step(number, factor, /*is_last=*/true);
    // Every rank has the same rows.
    const UpdateArguments arguments{.learning_rate = kRate, .divisor = num_ranks_};
    EXPECT_EQ(optimizer_.update(arguments).skipped, !std::isfinite(factor));
    return value;
  }
  double newest_loss(int number) {
    const at::NoGradGuard no_gradients;
    const auto pass = engine_.forward();
    return model_.loss(ids_of(number), targets_of(number), engine_).item<double>();
  }
  // Sets every parameter to 0.1.
  void begin_anew() {
    for (FlatUnit& unit : engine_.units()) {
      unit.replace_values(at::full({unit.layout().padded_numel()}, kAnew));
    }
  }
  Engine& engine() { return engine_; }
  ShardedOptimizer& optimizer() { return optimizer_; }

 private:
  double num_ranks_;
  SmallModel model_;
  Engine engine_;
  ShardedOptimizer optimizer_;
};

struct DelayedCase {
  std::string strategy;
  bool offload_parameters = false;
  int num_ranks = 1;
  HostUpdates updates = HostUpdates::kInBackground;
};
void PrintTo(const DelayedCase& c, std::ostream* out) {
  *out << c.strategy << (c.offload_parameters ? ", parameters too" : "") << " on " << c.num_ranks
       << (c.updates == HostUpdates::kAtOnce ? ", at once" : "");
}

class DelayedUpdate : public testing::TestWithParam<DelayedCase> {
 protected:
  template <typename Check>
  void beside_plain_loop(const Check& check) {
    WorldOptions options;
    if (placement_of(GetParam().strategy).needs_equal_nodes()) options.ranks_per_node = 2;
    run_thread_ranks(GetParam().num_ranks, options, [&](World& world) {
      EngineLoop engine(world, delayed(GetParam().strategy, GetParam().offload_parameters), GetParam().updates);
      PlainLoop plain;
      check(engine, plain);
    });
  }
};

void expect_near(double found, double expected, const std::string& what) {
  EXPECT_NEAR(found, expected, 1e-5 * expected) << what;
}

TEST_P(DelayedUpdate, IsOneStepBehind) {
  beside_plain_loop([](EngineLoop& engine, PlainLoop& plain) {
    for (int step = 1; step <= 8; ++step)
      expect_near(engine.step(step), plain.step(step), fmt::format("step {}", step));
  });
}

TEST_P(DelayedUpdate, IsNewestWhereItIsEvaluated) {
  beside_plain_loop([](EngineLoop& engine, PlainLoop& plain) {
    for (int step = 1; step <= 6; ++step) {
      expect_near(engine.step(step), plain.step(step), fmt::format("step {}", step));
      if (step % 2 == 1) continue;
      expect_near(engine.newest_loss(0), plain.newest_loss(0), fmt::format("after step {}", step));
      plain.use_newest();
    }
  });
}

TEST_P(DelayedUpdate, IsUsedAfterAStepThatWasLeftOut) {
  beside_plain_loop([](EngineLoop& engine, PlainLoop& plain) {
    for (int step = 1; step <= 6; ++step) {
      const double factor = step == 3 ? std::numeric_limits<double>::infinity() : 1;
      expect_near(engine.step(step, factor), plain.step(step, factor), fmt::format("step {}", step));
    }
  });
}

TEST_P(DelayedUpdate, IsForgottenWhereOtherValuesCome) {
  beside_plain_loop([](EngineLoop& engine, PlainLoop& plain) {
    for (int step = 1; step <= 6; ++step) {
      expect_near(engine.step(step), plain.step(step), fmt::format("step {}", step));
      if (step % 3 != 0) continue;
      engine.begin_anew();
      plain.begin_anew();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Rows, DelayedUpdate,
                         testing::Values(DelayedCase{"single"}, DelayedCase{"single", false, 1, HostUpdates::kAtOnce},
                                         DelayedCase{"zero3", true}, DelayedCase{"zero1", false, 2},
                                         DelayedCase{"zero2", false, 2}, DelayedCase{"zero3", false, 2},
                                         DelayedCase{"zero3", true, 2}, DelayedCase{"shard_grad_op", true, 2},
                                         DelayedCase{"hybrid_shard", false, 4}, DelayedCase{"zero3_hpz", false, 4},
                                         DelayedCase{"zero3_hpz", true, 4}));

TEST(DelayedUpdates, DifferFromThoseThatAreWaitedFor) {
  run_thread_ranks(1, {}, [](World& world) {
    EngineOptions at_once = delayed("zero2", false);
    at_once.spread.delayed_update = false;
    EngineLoop waits(world, at_once, HostUpdates::kInBackground);
    EngineLoop goes_on(world, delayed("zero2", false), HostUpdates::kInBackground);
    EXPECT_EQ(waits.step(1), goes_on.step(1));
    EXPECT_GT(std::abs(waits.step(1) - goes_on.step(1)), 0.01);
  });
}

TEST(DelayedUpdates, AreRefusedWhereNothingCanBeDelayed) {
  EXPECT_THROW(placement_of(SpreadOptions{.strategy = "zero2", .delayed_update = true}), UsageError);
  run_thread_ranks(1, {}, [](World& world) {
    EngineLoop loop(world, delayed("zero2", false), HostUpdates::kInBackground);
    EXPECT_THROW(loop.optimizer().update_during_backward({.learning_rate = kRate}), UsageError);
  });
}

TEST(DelayedUpdates, LeaveAStepItsValuesUntilItIsDone) {
  run_thread_ranks(1, {}, [](World& world) {
    EngineLoop loop(world, delayed("zero2", false), HostUpdates::kInBackground);
    loop.step(1);
    Engine& engine = loop.engine();
    const auto pass = engine.forward();
    EXPECT_THROW(engine.finish_updates(), Error);
  });
}

TEST(DelayedUpdates, WaitForTheLastMicroStepWhereOneIsEvaluated) {
  run_thread_ranks(1, {}, [](World& world) {
    EngineOptions options = delayed("zero2", false);
    options.types.accumulates = true;
    EngineLoop loop(world, options, HostUpdates::kInBackground);
    loop.step(1);
    const double of_step = loop.micro_step(2);
    EXPECT_EQ(loop.newest_loss(2), of_step);
    loop.step(3);
    EXPECT_NE(loop.newest_loss(2), of_step);
  });
}

TEST(DelayedUpdates, ChangeNothingOnACpuOfItsOwnMemory) {
  run_thread_ranks(1, {}, [](World& world) {
    EngineOptions options = delayed("zero3", true);
    options.host_memory_is_separate = false;
    SmallModel model;
    const Engine engine(world, model, model.units(), options);
    EXPECT_FALSE(engine.placement().delayed_update);
  });
}

}  // namespace
}  // namespace tessera
