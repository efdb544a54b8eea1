// What a model may do beyond a plain chain of blocks, and what must not be held afterwards.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/flight_recorder.h"
#include "core/error.h"
#include "model/run_modes.h"
#include "parallel/engine_options.h"
#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"

namespace tessera {
namespace {

// Two blocks whose weights are matrices; `order` says which runs when, on every rank.
struct TwoBlocks : UnitModel {
  struct Block : torch::nn::Module {
    Block() { weight = register_parameter("weight", at::eye(5) + 0.1 * at::ones({5, 5})); }
    at::Tensor weight;
  };
  TwoBlocks() : UnitModel("TwoBlocks") {
    for (const char* name : {"a", "b"}) {
      blocks.push_back(register_module(name, std::make_shared<Block>()));
      list.push_back({name, "Block", blocks.back().get()});
    }
  }
  const std::vector<Unit>& units() const override { return list; }
  at::Tensor forward(const at::Tensor& x, const std::vector<std::size_t>& order, UnitRunner& runner) {
    at::Tensor y = x;
    for (std::size_t i : order) {
      y = runner.run(list[i], y,
                     [this, i](const at::Tensor& input) { return at::mm(input, blocks[i]->weight).tanh(); });
    }
    return y;
  }
  std::vector<std::shared_ptr<Block>> blocks;
  std::vector<Unit> list;
};

at::Tensor input_of(int rank) {
  return at::arange(15, at::kFloat).view({3, 5}).mul_(0.1).add_(rank);
}

// The weights' gradients summed over the ranks' inputs, by plain autograd.
std::vector<at::Tensor> plain_gradients(const std::vector<std::size_t>& order, int num_ranks) {
  TwoBlocks model;
  UnitRunner plain;
  for (int rank = 0; rank < num_ranks; ++rank) model.forward(input_of(rank), order, plain).sum().backward();
  std::vector<at::Tensor> gradients;
  for (const auto& block : model.blocks) {
    const at::Tensor& gradient = block->weight.grad();
    gradients.push_back(gradient.defined() ? gradient.flatten() : at::zeros({25}));
  }
  return gradients;
}

void expect_gradients(const std::string& strategy, const std::vector<std::size_t>& order) {
  const std::vector<at::Tensor> expected = plain_gradients(order, 2);
  run_thread_ranks(2, {}, [&](World& world) {
    TwoBlocks model;
    Engine engine(world, model, model.units(), options_of(strategy));
    at::Tensor loss;
    {
      const auto pass = engine.forward();
      loss = model.forward(input_of(world.rank()), order, engine).sum();
    }
    engine.backward(loss);
    engine.wait_for_gradients();
    for (std::size_t i = 0; i < 2; ++i) {
      const FlatUnit& unit = engine.units()[i];
      if (unit.updated().begin != 0) continue;  // 25 numbers are one block: on the first rank
      EXPECT_TRUE(at::allclose(unit.gradient().narrow(0, 0, 25), expected[i], 1e-5, 1e-6)) << strategy << " unit " << i;
    }
  });
}

TEST(Engine, AUnitMayRunTwice) {
  for (const char* strategy : {"ddp", "zero2", "shard_grad_op", "full_shard"}) expect_gradients(strategy, {0, 1, 0});
}

TEST(Engine, AUnitMayNotRunAtAll) {
  for (const char* strategy : {"ddp", "zero2", "shard_grad_op", "full_shard"}) expect_gradients(strategy, {1});
}

TEST(Engine, WhereParametersStayWholeARankMayLeaveAUnitOut) {
  for (const char* strategy : {"ddp", "zero1", "zero2"}) {
    run_thread_ranks(2, {}, [&](World& world) {
      TwoBlocks model;
      Engine engine(world, model, model.units(), options_of(strategy));
      const std::vector<std::size_t> both{0, 1}, first{0};
      at::Tensor loss;
      {
        const auto pass = engine.forward();
        loss = model.forward(input_of(0), world.rank() == 0 ? both : first, engine).sum();
      }
      engine.backward(loss);
      ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
      EXPECT_FALSE(optimizer.update({.learning_rate = 0.1}).skipped);
    });
  }
}

TEST(Engine, CheckpointingGathersNoMoreAndGivesTheSameBits) {
  const auto run = [](bool checkpointed, std::vector<std::string>& gathers) {
    at::Tensor result;
    run_thread_ranks(2, {}, [&](World& world) {
      SmallModel model;
      Engine engine(world, model, model.units(), options_of("full_shard"));
      CheckpointRunner checkpoints(engine);
      const at::Tensor ids = at::arange(8);
      const std::size_t before = world.recorder().entries().size();
      at::Tensor loss;
      {
        const auto pass = engine.forward();
        loss = model.loss(ids, ids + 1, checkpointed ? static_cast<UnitRunner&>(checkpoints) : engine);
      }
      engine.backward(loss);
      engine.wait_for_gradients();
      if (world.rank() != 0) return;
      const auto entries = world.recorder().entries();
      for (std::size_t i = before; i < entries.size(); ++i) gathers.push_back(entries[i].operation + entries[i].unit);
      result = engine.units()[1].gradient().clone();
    });
    return result;
  };
  std::vector<std::string> plain_calls, checkpointed_calls;
  const at::Tensor plain = run(false, plain_calls), checkpointed = run(true, checkpointed_calls);
  EXPECT_TRUE(at::equal(plain, checkpointed));
  EXPECT_EQ(plain_calls.size(), checkpointed_calls.size());
}

TEST(Engine, HoldsNoWholeUnitBetweenStepsWhereTheRowSplits) {
  for (const std::string strategy : {"full_shard", "shard_grad_op"}) {
    run_thread_ranks(2, {}, [&](World& world) {
      SmallModel model;
      Engine engine(world, model, model.units(), options_of(strategy));
      const auto expect_released = [&](const char* when) {
        for (const FlatUnit& unit : engine.units()) EXPECT_FALSE(unit.is_whole()) << strategy << " " << when;
        for (const at::Tensor& p : model.parameters()) EXPECT_EQ(p.storage().nbytes(), 0u) << strategy << " " << when;
      };
      expect_released("at first");
      const at::Tensor ids = at::arange(8);
      at::Tensor loss;
      {
        const auto pass = engine.forward();
        loss = model.loss(ids, ids + 1, engine);
        EXPECT_EQ(engine.units()[0].is_whole(), strategy == "shard_grad_op");
      }
      engine.backward(loss);
      expect_released("after backward");
      {
        const at::NoGradGuard evaluation;
        const auto pass = engine.forward();
        model.loss(ids, ids + 1, engine);
      }
      expect_released("after an evaluation");
    });
  }
}

std::string failure_of(int num_ranks, const std::function<void(World&)>& body) {
  try {
    run_thread_ranks(num_ranks, {}, body);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing failed";
}

TEST(Engine, RanksWithAnotherModelAreNamedWithTheFirstDifference) {
  const std::string message = failure_of(3, [](World& world) {
    SmallModel model(world.rank() == 2 ? 4 : 3);
    Engine engine(world, model, model.units(), options_of("ddp"));
  });
  EXPECT_NE(message.find("rank 2 does not hold rank 0's model"), std::string::npos) << message;
  EXPECT_NE(message.find("block_3.in"), std::string::npos) << message;
}

TEST(Engine, SingleIsForOneRank) {
  const std::string message = failure_of(2, [](World& world) {
    SmallModel model;
    Engine engine(world, model, model.units(), options_of("single"));
  });
  EXPECT_NE(message.find("strategy 'single' is for one rank, but there are 2"), std::string::npos) << message;
}

TEST(Engine, AGradientThatIsNotFiniteSkipsTheStepOnEveryRank) {
  run_thread_ranks(3, {}, [](World& world) {
    TwoBlocks model;
    Engine engine(world, model, model.units(), options_of("zero2"));
    ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
    at::Tensor input = input_of(world.rank());
    if (world.rank() == 1) input[0][0] = std::numeric_limits<float>::quiet_NaN();
    const at::Tensor before = model.blocks[0]->weight.detach().clone();
    at::Tensor loss;
    {
      const auto pass = engine.forward();
      loss = model.forward(input, {0, 1}, engine).sum();
    }
    engine.backward(loss);
    const UpdateResult result = optimizer.update({.learning_rate = 0.1});
    EXPECT_TRUE(result.skipped);
    EXPECT_EQ(result.faults, (std::vector<GradientFault>{{1, "b"}, {1, "a"}}));
    EXPECT_TRUE(at::equal(model.blocks[0]->weight.detach(), before));
    EXPECT_EQ(optimizer.num_updates(), 0);
  });
}

}  // namespace
}  // namespace tessera
