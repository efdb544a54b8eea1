// Uses that a plain loop over a chain of blocks does not have: the numbers must be right there, too.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/flight_recorder.h"
#include "core/error.h"
#include "model/run_modes.h"
#include "parallel/chain_model.h"
#include "parallel/engine_options.h"
#include "parallel/sharded_optimizer.h"

namespace tessera {
namespace {

const std::vector<std::string> kRows = {"ddp", "zero1", "zero2", "shard_grad_op", "full_shard"};
constexpr std::int64_t kNumel = 25;  // of a weight

// The blocks' weights' gradients of two ranks, by plain autograd.
std::vector<at::Tensor> plain_gradients(const std::vector<std::size_t>& order) {
  Chain model;
  UnitRunner plain;
  for (int rank = 0; rank < 2; ++rank) model.loss(input_of(rank), order, plain).backward();
  std::vector<at::Tensor> gradients;
  for (const auto& block : model.blocks) gradients.push_back(block->weight.grad().flatten());
  return gradients;
}

void expect_weight_gradients(Engine& engine, const std::vector<at::Tensor>& expected, const std::string& what) {
  engine.wait_for_gradients();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const FlatUnit& unit = engine.units()[i];
    if (unit.updated().begin != 0) continue;  // one block: the first rank's
    EXPECT_TRUE(at::allclose(unit.gradient().narrow(0, 0, kNumel), expected[i], 1e-5, 1e-6)) << what << ", unit " << i;
  }
}

TEST(Corner, ACheckpointedUnitMayRunTwice) {
  const std::vector<std::size_t> order{0, 1, 2, 0};
  const std::vector<at::Tensor> expected = plain_gradients(order);
  for (const std::string& row : kRows) {
    run_thread_ranks(2, {}, [&](World& world) {
      Chain model;
      Engine engine(world, model, model.units(), options_of(row));
      CheckpointRunner checkpoints(engine);
      at::Tensor loss;
      {
        const auto pass = engine.forward();
        loss = model.loss(input_of(world.rank()), order, checkpoints);
      }
      engine.backward(loss);
      expect_weight_gradients(engine, expected, row);
    });
  }
}

// Gathers and reductions take turns in backward: a rank that waits for a gradient that never comes would change them.
TEST(Corner, ARankMayLeaveAParameterOfAUnitOut) {
  for (const std::string& row : kRows) {
    for (const auto prefetch : {BackwardPrefetch::kNone, BackwardPrefetch::kPre, BackwardPrefetch::kPost}) {
      run_thread_ranks(2, {}, [&](World& world) {
        Chain model;
        EngineOptions options = options_of(row);
        options.spread.backward_prefetch = prefetch;
        Engine engine(world, model, model.units(), options);
        ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
        at::Tensor loss;
        {
          const auto pass = engine.forward();
          loss = model.loss(input_of(world.rank()), {0, 1, 2}, engine, /*with_bias=*/world.rank() == 0);
        }
        engine.backward(loss);
        EXPECT_FALSE(optimizer.update({.learning_rate = 0.1}).skipped);
      });
    }
  }
}

// Checkpoints of the body's own: the weight gets a part of its gradient when the unit's seemed complete.
TEST(Corner, AGradientThatComesTooLateIsNotLostInSilence) {
  run_thread_ranks(1, {}, [](World& world) {
    Chain model;
    Engine engine(world, model, model.units(), options_of("ddp"));
    UnitRunner plain;
    CheckpointRunner checkpoints(plain);
    const auto half = [&](const at::Tensor& x) { return model.blocks[2]->forward(x, /*with_bias=*/true); };
    at::Tensor loss;
    {
      const auto pass = engine.forward();
      const auto body = [&](const at::Tensor& x) {
        return checkpoints.run(model.list[2], checkpoints.run(model.list[2], x, half), half);
      };
      loss = engine.run(model.list[2], at::mm(input_of(0), model.first), body).sum();
    }
    try {
      engine.backward(loss);
      FAIL() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("arrived after its unit's gradient was complete"), std::string::npos)
          << error.what();
    }
  });
}

TEST(Corner, AFrozenUnitKeepsNoOtherWaiting) {
  run_thread_ranks(2, {}, [](World& world) {
    Chain model;
    for (at::Tensor& parameter : model.blocks[2]->parameters()) parameter.set_requires_grad(false);
    EngineOptions options = options_of("full_shard");
    options.spread.backward_prefetch = BackwardPrefetch::kNone;
    Engine engine(world, model, model.units(), options);
    at::Tensor loss;
    {
      const auto pass = engine.forward();
      loss = model.loss(input_of(world.rank()), {0, 1, 2}, engine);
    }
    const std::size_t before = world.recorder().entries().size();
    engine.backward(loss);
    engine.wait_for_gradients();
    std::vector<std::string> calls;
    const auto entries = world.recorder().entries();
    for (std::size_t i = before; i < entries.size(); ++i) calls.push_back(entries[i].operation + " " + entries[i].unit);
    const auto place = [&](const char* call) { return std::find(calls.begin(), calls.end(), call) - calls.begin(); };
    EXPECT_LT(place("reduce_scatter block_1"), place("all_gather block_0"));
  });
}

// Losses of two steps, with something done at two places that must change nothing.
using Between = std::function<void(Chain&, Engine&)>;
std::vector<double> losses_with(const std::string& row, const Between& after_forward, const Between& after_backward) {
  std::vector<double> losses;
  run_thread_ranks(2, {}, [&](World& world) {
    Chain model;
    Engine engine(world, model, model.units(), options_of(row));
    ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
    for (int step = 0; step < 3; ++step) {
      at::Tensor loss;
      {
        const auto pass = engine.forward();
        loss = model.loss(input_of(world.rank()), {0, 1, 2}, engine);
      }
      if (after_forward) after_forward(model, engine);
      engine.backward(loss);
      if (after_backward) after_backward(model, engine);
      optimizer.update({.learning_rate = 0.1});
      if (world.rank() == 0) losses.push_back(loss.item<double>());
    }
  });
  return losses;
}

void evaluate(Chain& model, Engine& engine) {
  const at::NoGradGuard evaluation;
  const auto pass = engine.forward();
  model.loss(input_of(3), {0, 1, 2}, engine);
}

TEST(Corner, AnEvaluationBetweenForwardAndBackwardChangesNothing) {
  const std::vector<double> expected = losses_with("ddp", {}, {});
  for (const std::string& row : kRows) EXPECT_EQ(losses_with(row, evaluate, {}), expected) << row;
}

// What that pass has gathered is old after the update.
TEST(Corner, APassBetweenBackwardAndUpdateChangesNothing) {
  const auto look = [](Chain& model, Engine& engine) {
    const auto pass = engine.forward();
    model.loss(input_of(3), {0, 1, 2}, engine);
  };
  const std::vector<double> expected = losses_with("ddp", {}, {});
  for (const std::string& row : kRows) EXPECT_EQ(losses_with(row, {}, look), expected) << row;
}

TEST(Corner, AnEvaluationWithinAPassReleasesNothingOfIt) {
  run_thread_ranks(2, {}, [](World& world) {
    Chain model;
    Engine engine(world, model, model.units(), options_of("full_shard"));
    const auto pass = engine.forward();
    evaluate(model, engine);
    EXPECT_TRUE(engine.units().back().is_whole());
  });
}

TEST(Corner, AGradientFromBeforeTheEngineIsNotUsed) {
  const std::vector<at::Tensor> expected = plain_gradients({0, 1, 2});
  run_thread_ranks(2, {}, [&](World& world) {
    Chain model;
    UnitRunner plain;
    model.loss(input_of(5), {0, 1, 2}, plain).backward();
    Engine engine(world, model, model.units(), options_of("ddp"));
    at::Tensor loss;
    {
      const auto pass = engine.forward();
      loss = model.loss(input_of(world.rank()), {0, 1, 2}, engine);
    }
    engine.backward(loss);
    expect_weight_gradients(engine, expected, "ddp");
  });
}

struct Masked : Chain {
  explicit Masked(const at::TensorOptions& options = {}) : Chain(1) {
    mask = register_buffer("mask", at::ones({3}, options.dtype(at::kBool)));
    table = register_buffer("table", at::ones({3}, options.dtype(at::kDouble)));
    nothing = register_buffer("nothing", at::ones({0}, options.dtype(at::kChar)));
  }
  at::Tensor mask, table, nothing;
};

TEST(Corner, BuffersOfAnyTypeAreTheFirstRanks) {
  run_thread_ranks(2, {}, [&](World& world) {
    Masked model;
    if (world.rank() == 1) model.mask[1] = false, model.table[1] = 5;
    Engine engine(world, model, model.units(), options_of("ddp"));
    EXPECT_TRUE(model.mask.all().item<bool>());
    if (world.rank() == 1) model.mask[1] = false, model.table[1] = 5;
    engine.sync_buffers();
    EXPECT_TRUE(model.mask.all().item<bool>());
    EXPECT_EQ(model.table[1].item<double>(), 1);
  });
}

TEST(Corner, ABufferOnTheMetaDeviceIsNamed) {
  run_thread_ranks(1, {}, [](World& world) {
    Masked model(at::device(at::kMeta));
    try {
      const Engine engine(world, model, model.units(), options_of("ddp"));
      FAIL() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("buffer mask is on the meta device"), std::string::npos) << error.what();
    }
  });
}

// A model that an engine could not be made for computes as it did.
TEST(Corner, AnEngineThatWasNotMadeLeavesNoHooks) {
  run_thread_ranks(1, {}, [](World& world) {
    Chain model;
    EngineOptions options = options_of("ddp");
    options.first_values = [](const std::string& name, at::Tensor) {
      if (name == "first") throw Error("no values for it");  // the root's: it comes last
    };
    EXPECT_THROW(Engine(world, model, model.units(), options), Error);
    UnitRunner plain;
    model.loss(input_of(0), {0, 1, 2}, plain).backward();
    EXPECT_TRUE(model.blocks[0]->weight.grad().defined());
  });
}

}  // namespace
}  // namespace tessera
