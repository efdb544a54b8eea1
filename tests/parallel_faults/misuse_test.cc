// The engine used wrongly, and faults on ranks that are threads: a clear message, no hang, no wrong numbers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"
#include "parallel_faults/faulty_runner.h"
#include "parallel_faults/ranks.h"
#include "support/contains.h"

namespace tessera {
namespace {

const std::vector<std::string> kRows = {"ddp", "zero1", "zero2", "shard_grad_op", "full_shard"};

// A model under the engine on one rank of several.
struct MisusedRun {
  SmallModel model;
  Engine engine;
  ShardedOptimizer optimizer{engine, choose_optimizer("adamw")};
  at::Tensor ids;

  MisusedRun(World& world, const EngineOptions& options)
      : engine(world, model, model.units(), options), ids(at::arange(8) + world.rank()) {}
  MisusedRun(World& world, const std::string& strategy) : MisusedRun(world, options_of(strategy)) {}

  at::Tensor forward() { return forward(engine); }
  at::Tensor forward(UnitRunner& runner) {
    const auto pass = engine.forward();
    return model.loss(ids, ids + 1, runner);
  }
  UpdateResult update() { return optimizer.update({.learning_rate = 1e-3}); }
  void step() {
    engine.backward(forward());
    update();
  }
  std::vector<at::Tensor> masters() {
    std::vector<at::Tensor> copies;
    for (const FlatUnit& unit : engine.units()) copies.push_back(unit.master().clone());
    return copies;
  }
};

std::string message_when(const std::function<void()>& use) {
  try {
    use();
  } catch (const std::exception& error) {
    return message_of(error);
  }
  return "nothing was refused";
}

void on_two_ranks(const std::string& strategy, const std::function<void(MisusedRun&)>& body) {
  run_thread_ranks(2, {}, [&](World& world) {
    MisusedRun training(world, strategy);
    body(training);
  });
}

TEST(Misuse, AnUpdateBeforeBackwardIsRefused) {
  for (const std::string& row : kRows) {
    on_two_ranks(row, [](MisusedRun& t) {
      EXPECT_TRUE(contains(message_when([&] { t.update(); }), "has no gradient: call backward() before each update()"));
    });
  }
}

TEST(Misuse, ASecondUpdateIsRefused) {
  for (const std::string& row : kRows) {
    on_two_ranks(row, [](MisusedRun& t) {
      t.step();
      const std::vector<at::Tensor> before = t.masters();
      EXPECT_TRUE(contains(message_when([&] { t.update(); }), "has no gradient: call backward() before each update()"));
      for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(t.engine.units()[i].master(), before[i]));
    });
  }
}

TEST(Misuse, AnUpdateBeforeTheLastMicroStepIsRefused) {
  for (const std::string& row : kRows) {
    run_thread_ranks(2, {}, [&](World& world) {
      EngineOptions options = options_of(row);
      options.types.accumulates = true;
      MisusedRun t(world, options);
      t.engine.backward(t.forward(), /*last_micro_step=*/false);
      EXPECT_TRUE(contains(message_when([&] { t.update(); }), "the last backward() announced another micro-step"));
    });
  }
}

TEST(Misuse, ASecondBackwardIsRefused) {
  for (const std::string& row : kRows) {
    on_two_ranks(row, [](MisusedRun& t) {
      const at::Tensor loss = t.forward();
      t.engine.backward(loss);
      EXPECT_TRUE(contains(message_when([&] { t.engine.backward(loss); }), "backward() needs a forward pass"));
      // It was refused before anything happened: the step goes on.
      EXPECT_FALSE(t.update().skipped);
    });
  }
}

// Some rows would add to it, others forget it.
TEST(Misuse, AGradientThatNobodyUsedIsNotAddedTo) {
  for (const std::string& row : kRows) {
    on_two_ranks(row, [](MisusedRun& t) {
      t.engine.backward(t.forward());
      const at::Tensor loss = t.forward();
      EXPECT_TRUE(contains(message_when([&] { t.engine.backward(loss); }), "before the previous gradient was used"));
      EXPECT_FALSE(t.update().skipped);
      t.engine.backward(loss);  // it was refused before anything happened
    });
  }
}

// An older loss after a newer forward: libtorch's own message, with the place.
TEST(Misuse, AGraphThatWasPassedBackIsNamedAsSuch) {
  const std::vector<std::string> messages = messages_of(2, [](World& world) {
    MisusedRun t(world, "full_shard");
    const at::Tensor loss = t.forward();
    t.engine.backward(loss);
    t.update();
    t.forward();
    t.engine.backward(loss);
  });
  for (const std::string& message : messages) {
    EXPECT_TRUE(contains(message, "backward of unit ")) << message;
    EXPECT_TRUE(contains(message, "backward through the graph a second time")) << message;
  }
}

TEST(Misuse, ALossWithoutAGraphIsRefused) {
  on_two_ranks("full_shard", [](MisusedRun& t) {
    t.forward();
    EXPECT_TRUE(contains(message_when([&] { t.engine.backward(at::ones({})); }), "does not require grad"));
  });
}

TEST(Misuse, AUnitOutsideAPassIsRefused) {
  for (const std::string& row : kRows) {
    on_two_ranks(row, [](MisusedRun& t) {
      const auto run = [&] {
        t.engine.run(t.model.units()[0], at::ones({2, 33}), [](const at::Tensor& x) { return x; });
      };
      EXPECT_TRUE(contains(message_when(run), "unit block_0 was run outside a forward pass"));
      t.step();  // nothing was begun
      EXPECT_EQ(t.optimizer.num_updates(), 1);
    });
  }
}

TEST(Misuse, AForeignUnitIsRefused) {
  on_two_ranks("full_shard", [](MisusedRun& t) {
    SmallModel other;
    const auto pass = t.engine.forward();
    EXPECT_TRUE(contains(message_when([&] {
                           t.engine.run(other.units()[1], at::ones({2, 33}), [](auto& x) { return x; });
                         }),
                         "unit block_1 is not part of this engine's model"));
  });
}

// If ranks gather units of one size in different orders, the sizes do not show it: the order is compared. Where gathers
// alternate with reductions, the collectives themselves differ.
TEST(Misuse, RanksThatRunUnitsInDifferentOrdersAreNamedBeforeTheUpdate) {
  for (const std::string row : {"shard_grad_op", "full_shard"}) {
    const std::vector<std::string> messages = messages_of(3, [&](World& world) {
      EngineOptions options = options_of(row);
      options.spread.forward_prefetch = false;
      options.spread.backward_prefetch = BackwardPrefetch::kNone;
      MisusedRun t(world, options);
      at::Tensor x = at::ones({2, SmallModel::kWidth});
      at::Tensor loss;
      {
        const auto pass = t.engine.forward();
        std::vector<std::size_t> order{0, 2};
        if (world.rank() == 2) std::swap(order[0], order[1]);
        for (const std::size_t i : order) {
          x = t.engine.run(t.model.units()[i], x,
                           [&](const at::Tensor& y) { return y * t.model.units()[i].module->parameters()[0].sum(); });
        }
        loss = x.sum();
      }
      t.engine.backward(loss);
      t.update();
    });
    for (const std::string& message : messages) {
      EXPECT_TRUE(contains(message, row == "full_shard" ? "rank 2, gather of unit block_0: the ranks disagree"
                                                        : "rank 0 and rank 2 have gathered units in different orders"));
    }
  }
}

// After any fault, the first error is repeated, and nothing is computed.
TEST(Misuse, AnEngineIsNotUsedAfterAnError) {
  for (const std::string& row : kRows) {
    on_two_ranks(row, [](MisusedRun& t) {  // both ranks fail alike, so none waits for the other
      FaultyRunner faulty(t.engine, "block_1");
      faulty.in_forward = [] { throw std::runtime_error("the roof is leaking"); };
      EXPECT_TRUE(contains(message_when([&] { t.forward(faulty); }), "forward of unit block_1: the roof is leaking"));
      const std::string said = "the engine cannot be used after an error: rank ";
      EXPECT_TRUE(contains(message_when([&] { t.forward(); }), said));
      EXPECT_TRUE(contains(message_when([&] { t.engine.backward(at::ones({}, at::requires_grad())); }), said));
      const std::string of_update = message_when([&] { t.update(); });
      EXPECT_TRUE(contains(of_update, said) || contains(of_update, "has no gradient")) << of_update;
    });
  }
}

// A pass without gradients waits at its end to release units: it must not do so while an exception passes through.
TEST(Misuse, AnErrorInAnEvaluationDoesNotEndTheProcess) {
  const std::vector<std::string> messages = messages_of(3, [](World& world) {
    MisusedRun t(world, "full_shard");
    const at::NoGradGuard evaluation;
    FaultyRunner faulty(t.engine, "block_0");  // before it has begun to gather block_2
    if (world.rank() == 1) faulty.in_forward = [] { throw std::runtime_error("the roof is leaking"); };
    t.forward(faulty);
  });
  EXPECT_EQ(messages[1], "rank 1, forward of unit block_0: the roof is leaking");
  for (const std::size_t other : {0, 2}) EXPECT_TRUE(contains(messages[other], "rank 1 failed: " + messages[1]));
}

TEST(Fault, OfOneRankIsNamedByTheOthersWithWhatTheyWaitedFor) {
  const auto messages_with = [](const std::function<void(FaultyRunner&)>& break_it) {
    return messages_of(3, [&](World& world) {
      MisusedRun t(world, "full_shard");
      FaultyRunner runner(t.engine, "block_1");
      if (world.rank() == 1) break_it(runner);
      t.engine.backward(t.forward(runner));
      t.update();
    });
  };
  const std::vector<std::string> forward =
      messages_with([](FaultyRunner& r) { r.in_forward = [] { throw std::runtime_error("the roof is leaking"); }; });
  EXPECT_EQ(forward[1], "rank 1, forward of unit block_1: the roof is leaking");
  const std::vector<std::string> backward = messages_with([](FaultyRunner& r) {
    r.in_backward = [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("the roof is leaking"); };
  });
  EXPECT_EQ(backward[1], "rank 1, backward of unit block_1: the roof is leaking");
  for (const int other : {0, 2}) {
    for (const auto& messages : {forward, backward}) {
      const std::string& message = messages[static_cast<std::size_t>(other)];
      EXPECT_EQ(message.rfind("rank " + std::to_string(other) + ", ", 0), 0u) << message;
      EXPECT_TRUE(contains(message, " of unit ")) << message;
      EXPECT_TRUE(contains(message, "rank 1 failed: " + messages[1])) << message;
    }
  }
}

TEST(Fault, ANanIsSkippedByEveryRankAndItsRankAndUnitAreInTheResult) {
  const std::vector<GradientFault> expected = {{2, "block_1"}, {2, "block_0"}, {2, "root"}};
  for (const std::string& row : kRows) {
    run_thread_ranks(3, {}, [&](World& world) {
      MisusedRun t(world, row);
      FaultyRunner runner(t.engine, "block_1");
      const float nan = std::numeric_limits<float>::quiet_NaN();
      if (world.rank() == 2) runner.in_backward = [&](const at::Tensor& gradient) { return gradient * nan; };
      const std::vector<at::Tensor> before = t.masters();
      t.engine.backward(t.forward(runner));
      const UpdateResult result = t.update();
      EXPECT_TRUE(result.skipped) << row;
      EXPECT_EQ(result.faults, expected) << row << ": " << describe(result.faults);
      for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(t.engine.units()[i].master(), before[i]));
      // The next step is not affected.
      t.engine.backward(t.forward());
      const UpdateResult next = t.update();
      EXPECT_FALSE(next.skipped) << row;
      EXPECT_TRUE(next.faults.empty()) << row;
    });
  }
}

TEST(Fault, ANanOfAnEarlierMicroStepIsNamedToo) {
  for (const std::string& row : kRows) {
    run_thread_ranks(2, {}, [&](World& world) {
      EngineOptions options = options_of(row);
      options.types.accumulates = true;
      MisusedRun t(world, options);
      FaultyRunner runner(t.engine, "block_2");
      const float infinity = std::numeric_limits<float>::infinity();
      if (world.rank() == 1) runner.in_backward = [&](const at::Tensor& gradient) { return gradient * infinity; };
      t.engine.backward(t.forward(runner), /*last_micro_step=*/false);
      t.engine.backward(t.forward(), /*last_micro_step=*/true);
      const UpdateResult result = t.update();
      EXPECT_TRUE(result.skipped) << row;
      EXPECT_EQ(describe(result.faults), "the gradient is not finite: rank 1 in unit block_2 and 3 others") << row;
    });
  }
}

TEST(Fault, OneRankNamesItsUnitsToo) {
  run_thread_ranks(1, {}, [](World& world) {
    MisusedRun t(world, "single");
    FaultyRunner runner(t.engine, "block_0");
    runner.in_backward = [](const at::Tensor& gradient) { return gradient / 0; };
    t.engine.backward(t.forward(runner));
    EXPECT_EQ(describe(t.update().faults), "the gradient is not finite: rank 0 in unit block_0 and 1 other");
  });
}

// 40000 fits into float16, 80000 does not.
TEST(Fault, ASumThatOverflowsIsNobodysFault) {
  run_thread_ranks(2, {}, [](World& world) {
    torch::nn::Module model;
    const at::Tensor weight = model.register_parameter("weight", at::ones({3}));
    EngineOptions options = options_of("zero2");
    options.types.reduce = at::kHalf;
    Engine engine(world, model, {}, options);
    ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
    at::Tensor loss;
    {
      const auto pass = engine.forward();
      loss = (weight * 4e4).sum();
    }
    engine.backward(loss);
    const UpdateResult result = optimizer.update({.learning_rate = 1});
    EXPECT_TRUE(result.skipped);
    EXPECT_EQ(describe(result.faults),
              "the gradient is not finite: each rank's own is finite, but their sum overflows its type");
  });
}

}  // namespace
}  // namespace tessera
