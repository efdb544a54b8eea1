// A user's own model by the public classes: the three ways, every strategy, and what is refused.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "library/models.h"
#include "support/contains.h"
#include "support/message_of.h"
#include "tessera/optimizer.h"
#include "tessera/shard.h"
#include "tessera/spread.h"

namespace tessera {
namespace {

constexpr int kNumSteps = 6;

enum class Way { kWhole, kSequential, kBlocks };

struct LibraryRun {
  Way way = Way::kBlocks;
  int num_ranks = 2;
  ShardOptions options{};
  int num_micro_steps = 1;
};

void PrintTo(const Way& way, std::ostream* out) {
  *out << (way == Way::kWhole ? "whole" : way == Way::kSequential ? "sequential" : "blocks");
}

// The loss of every step and the norm of its gradient. `forward` gives the loss of a batch.
std::vector<double> train(World& world, Sharded& sharded, const std::function<at::Tensor(const Batch&)>& loss,
                          const LibraryRun& run) {
  Optimizer optimizer(sharded, AdamW{.learning_rate = 1e-2, .weight_decay = 0.1});
  std::vector<double> numbers;
  for (int step = 0; step < kNumSteps; ++step) {
    double mean = 0;
    for (int i = 0; i < run.num_micro_steps; ++i) {
      const int parts = run.num_ranks * run.num_micro_steps;
      const Batch batch = batch_of(step, world.rank() * run.num_micro_steps + i, parts, run.options.compute_type);
      const at::Tensor value = loss(batch);
      i + 1 == run.num_micro_steps ? sharded.backward(value) : sharded.accumulate(value);
      mean += mean_over_ranks(world, value) / run.num_micro_steps;
    }
    numbers.push_back(mean);
    numbers.push_back(optimizer.step({.max_norm = 1}).gradient_norm);
  }
  const bool may_skip = run.options.compute_type == at::kHalf;  // until the loss scale fits
  EXPECT_GE(optimizer.num_updates(), may_skip ? kNumSteps / 2 : kNumSteps);
  return numbers;
}

std::vector<double> train(World& world, const LibraryRun& run) {
  ShardOptions options = run.options;
  options.accumulates = run.num_micro_steps > 1;
  if (run.way == Way::kWhole) {
    PlainNet model;
    Sharded sharded(world, model, options);
    EXPECT_TRUE(sharded.units().empty());
    return train(
        world, sharded,
        [&](const Batch& b) { return sharded.forward([&] { return loss_of(model.forward(b.x), b.y); }); }, run);
  }
  if (run.way == Way::kSequential) {
    torch::nn::Sequential model = make_sequential();
    Sharded sharded(world, *model, options);
    EXPECT_EQ(sharded.units().size(), kNumBlocks + 2);
    return train(
        world, sharded, [&](const Batch& b) { return loss_of(sharded.forward(b.x), b.y); }, run);
  }
  BlockNet model;
  options.units = units_of<BlockImpl>(model);
  Sharded sharded(world, model, options);
  EXPECT_EQ(sharded.units().at(1).name, "block_1");
  return train(
      world, sharded,
      [&](const Batch& b) { return sharded.forward([&] { return loss_of(model.forward(b.x, sharded), b.y); }); }, run);
}

std::vector<double> numbers_of(const LibraryRun& run) {
  std::vector<double> numbers;
  WorldOptions options;
  options.comm_timeout = std::chrono::seconds(60);
  run_thread_ranks(run.num_ranks, options, [&](World& world) {
    std::vector<double> own = train(world, run);
    if (world.rank() == 0) numbers = std::move(own);
  });
  return numbers;
}

class ShardedWays : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(All, ShardedWays, testing::Values(Way::kWhole, Way::kSequential, Way::kBlocks),
                         testing::PrintToStringParamName());

TEST_P(ShardedWays, EveryStrategyGivesTheSameBits) {
  const std::vector<double> expected = numbers_of({GetParam(), 2, {.spread = {.strategy = "ddp"}}});
  EXPECT_LT(expected[2 * kNumSteps - 2], expected[0]) << "it learns";
  for (const std::string& strategy : strategy_names()) {
    if (strategy == "single") continue;
    EXPECT_EQ(numbers_of({GetParam(), 2, {.spread = {.strategy = strategy}}}), expected) << strategy;
  }
}

TEST_P(ShardedWays, OneRankTakesEveryStrategy) {
  const std::vector<double> expected = numbers_of({GetParam(), 1, {.spread = {.strategy = "single"}}});
  for (const std::string& strategy : strategy_names()) {
    EXPECT_EQ(numbers_of({GetParam(), 1, {.spread = {.strategy = strategy}}}), expected) << strategy;
  }
}

TEST_P(ShardedWays, BfloatGivesTheSameBitsInEveryStrategy) {
  if (GetParam() == Way::kWhole)
    GTEST_SKIP() << "libtorch's batch norm takes no bfloat16 weights beside its statistics";
  const ShardOptions half{.spread = {.strategy = "ddp"}, .compute_type = at::kBFloat16};
  const std::vector<double> expected = numbers_of({GetParam(), 2, half});
  for (const char* strategy : {"zero2", "full_shard"}) {
    ShardOptions options = half;
    options.spread.strategy = strategy;
    EXPECT_EQ(numbers_of({GetParam(), 2, options}), expected) << strategy;
  }
}

// The losses of the single-device program: libtorch's own optimizer and clipping, the whole batch at once.
TEST(Sharded, TrainsAsThePlainProgramDoes) {
  BlockNet model;
  UnitRunner plain;
  torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  const std::vector<double> spread = numbers_of({Way::kBlocks, 3, {.spread = {.strategy = "full_shard"}}});
  for (int step = 0; step < kNumSteps; ++step) {
    const Batch batch = batch_of(step, 0, 1);
    optimizer.zero_grad();
    const at::Tensor loss = loss_of(model.forward(batch.x, plain), batch.y);
    loss.backward();
    std::vector<at::Tensor> norms;
    for (const at::Tensor& parameter : model.parameters()) norms.push_back(parameter.grad().norm());
    const double norm = at::stack(norms).norm().item<double>();
    for (const at::Tensor& parameter : model.parameters()) parameter.grad().mul_(std::min(1.0, 1 / (norm + 1e-6)));
    optimizer.step();
    EXPECT_NEAR(spread[2 * step], loss.item<double>(), 1e-5 * loss.item<double>()) << "step " << step;
    EXPECT_NEAR(spread[2 * step + 1], norm, 1e-4 * norm) << "step " << step;
  }
}

TEST(Sharded, MicroStepsGiveTheMeanOfTheirLosses) {
  const std::vector<double> at_once = numbers_of({Way::kBlocks, 2, {.spread = {.strategy = "zero2"}}});
  for (const char* strategy : {"ddp", "full_shard"}) {
    const std::vector<double> in_parts = numbers_of({Way::kBlocks, 2, {.spread = {.strategy = strategy}}, 3});
    for (std::size_t i = 0; i < at_once.size(); ++i) {
      EXPECT_NEAR(in_parts[i], at_once[i], 1e-5 * at_once[i]) << strategy << " " << i;
    }
  }
}

TEST(Sharded, HalfWithItsLossScaleLearnsAlikeInEveryStrategy) {
  const std::vector<double> expected =
      numbers_of({Way::kBlocks, 2, {.spread = {.strategy = "ddp"}, .compute_type = at::kHalf}});
  EXPECT_LT(expected[2 * kNumSteps - 2], expected[0]);
  const std::vector<double> single = numbers_of({Way::kBlocks, 2, {.spread = {.strategy = "ddp"}}});
  EXPECT_NEAR(expected[0], single[0], 1e-2) << "the scale is no part of the loss";
  EXPECT_LT(expected.back(), 2 * single.back()) << "nor of the norm";
  for (const char* strategy : {"zero2", "full_shard"}) {
    EXPECT_EQ(numbers_of({Way::kBlocks, 2, {.spread = {.strategy = strategy}, .compute_type = at::kHalf}}), expected)
        << strategy;
  }
}

TEST(Sharded, OffloadingChangesNoBits) {
  const std::vector<double> expected = numbers_of({Way::kBlocks, 2, {.spread = {.strategy = "full_shard"}}});
  const SpreadOptions optimizer{.strategy = "zero2", .offload_optimizer = true};
  EXPECT_EQ(numbers_of({Way::kBlocks, 2, {.spread = optimizer}}), expected);
  const SpreadOptions all{.strategy = "full_shard", .offload_optimizer = true, .offload_parameters = true};
  EXPECT_EQ(numbers_of({Way::kBlocks, 2, {.spread = all}}), expected);
}

TEST(Sharded, RecomputingGivesTheSameBits) {
  const std::vector<double> expected = numbers_of({Way::kBlocks, 2, {.spread = {.strategy = "full_shard"}}});
  EXPECT_EQ(numbers_of({Way::kBlocks, 2, {.spread = {.strategy = "full_shard"}, .recomputes = true}}), expected);
}

TEST(Sharded, EvaluatesWithoutGradients) {
  run_thread_ranks(2, {}, [](World& world) {
    BlockNet model, alone;
    Sharded sharded(world, model, {.spread = {.strategy = "full_shard"}, .units = units_of<BlockImpl>(model)});
    UnitRunner plain;
    const at::NoGradGuard no_gradients;
    const Batch batch = batch_of(0, 0, 1);
    const at::Tensor logits = sharded.forward([&] { return model.forward(batch.x, sharded); });
    EXPECT_TRUE(at::equal(logits, alone.forward(batch.x, plain)));
    for (const at::Tensor& parameter : model.parameters()) EXPECT_EQ(parameter.storage().nbytes(), 0u);
    int num_calls = 0;
    sharded.forward([&] { ++num_calls; });  // nothing to return
    EXPECT_EQ(num_calls, 1);
  });
}

TEST(Sharded, TheDivisorMayBeGiven) {
  run_thread_ranks(2, {}, [](World& world) {
    const auto norm = [&](double factor, double divisor) {
      BlockNet model;
      Sharded sharded(world, model, {.spread = {.strategy = "zero2"}});
      Optimizer optimizer(sharded, Sgd{.learning_rate = 0.1, .momentum = 0.9});
      const Batch batch = batch_of(0, world.rank(), 2);
      sharded.backward(sharded.forward([&] { return loss_of(model.forward(batch.x, sharded), batch.y) * factor; }));
      return optimizer.step({.divisor = divisor}).gradient_norm;
    };
    EXPECT_NEAR(norm(6, 12), norm(1, 0), 1e-6) << "sums over 6 rows a rank, 12 in all";
  });
}

// --- wrong use ---

// A model with blocks, sharded over two ranks, whose use goes wrong on both alike.
struct Bench {
  explicit Bench(World& world, const std::string& strategy = "full_shard")
      : sharded(world, model, {.spread = {.strategy = strategy}, .units = units_of<BlockImpl>(model)}),
        optimizer(sharded, AdamW{}),
        batch(batch_of(0, world.rank(), 2)) {}
  at::Tensor loss() {
    return sharded.forward([&] { return loss_of(model.forward(batch.x, sharded), batch.y); });
  }
  BlockNet model;
  Sharded sharded;
  Optimizer optimizer;
  Batch batch;
};

void with_bench(const std::function<void(Bench&)>& check) {
  for (const char* strategy : {"ddp", "full_shard"}) {
    SCOPED_TRACE(strategy);
    run_thread_ranks(2, {}, [&](World& world) {
      Bench bench(world, strategy);
      check(bench);
    });
  }
}

TEST(ShardedRefuses, AnUnknownStrategy) {
  run_thread_ranks(1, {}, [](World& world) {
    BlockNet model;
    EXPECT_TRUE(contains(message_of([&] { Sharded(world, model, {.spread = {.strategy = "fullshard"}}); }),
                         "strategy 'fullshard' is not known, did you mean 'full_shard'?"));
    EXPECT_TRUE(contains(message_of([&] { Sharded(world, model, {.compute_type = at::kInt}); }),
                         "expected Float, BFloat16 or Half"));
    torch::nn::Sequential empty;
    EXPECT_TRUE(contains(message_of([&] { Sharded(world, *empty); }), "has no parameters to shard"));
  });
}

TEST(ShardedRefuses, CallsInTheWrongOrder) {
  with_bench([](Bench& b) {
    EXPECT_TRUE(contains(message_of([&] { b.optimizer.step(); }), "call backward() first"));
    EXPECT_TRUE(contains(message_of([&] {
                           b.sharded.run(b.model.blocks[0], at::ones({1, kWidth}));
                         }),
                         "'block_0' was run outside forward()"));
    const at::Tensor loss = b.loss();
    b.sharded.backward(loss);
    EXPECT_TRUE(contains(message_of([&] { b.sharded.backward(loss); }), "without a step in between"));
    b.optimizer.step();
    EXPECT_TRUE(contains(message_of([&] { b.sharded.backward(loss); }), "needs a forward() before it"));
    EXPECT_TRUE(contains(message_of([&] { b.optimizer.step(); }), "call backward() first"));
    EXPECT_TRUE(contains(message_of([&] { b.sharded.accumulate(b.loss()); }), "ShardOptions::accumulates"));
    EXPECT_TRUE(contains(message_of([&] { b.sharded.backward(b.loss().detach()); }), "the loss has no gradient"));
    EXPECT_TRUE(contains(message_of([&] { b.sharded.forward(b.batch.x); }), "is for a torch::nn::Sequential"));
    EXPECT_TRUE(contains(message_of([&] { Optimizer second(b.sharded, Sgd{}); }), "already has an optimizer"));
    // None of this has harmed it.
    const at::Tensor good = b.loss();
    {
      const at::NoGradGuard no_gradients;
      EXPECT_TRUE(contains(message_of([&] { b.loss(); }), "evaluate before or after"));
    }
    b.sharded.backward(good);
    EXPECT_FALSE(b.optimizer.step().skipped);
  });
}

TEST(ShardedRefuses, AStepAfterAccumulateAlone) {
  run_thread_ranks(1, {}, [](World& world) {
    BlockNet model;
    Sharded sharded(world, model, {.accumulates = true});
    Optimizer optimizer(sharded, AdamW{});
    const Batch batch = batch_of(0, 0, 1);
    sharded.accumulate(sharded.forward([&] { return loss_of(model.forward(batch.x, sharded), batch.y); }));
    EXPECT_TRUE(contains(message_of([&] { optimizer.step(); }), "call backward() for the last micro-step"));
  });
}

TEST(ShardedRefuses, CallsWithinAPass) {
  run_thread_ranks(1, {}, [](World& world) {
    Bench b(world);
    const std::string message =
        message_of([&] { b.sharded.forward([&] { b.sharded.forward([&] { return b.batch.x; }); }); });
    EXPECT_TRUE(contains(message, "forward() was called inside forward()"));
    // An exception in a pass leaves units in no known state.
    EXPECT_TRUE(contains(message_of([&] { b.loss(); }), "cannot be used any more because forward() failed"));
  });
}

TEST(ShardedRefuses, AModelThatWasChangedAfterSharding) {
  with_bench([](Bench& b) {
    b.model.stem->weight.set_requires_grad(false);
    EXPECT_TRUE(contains(message_of([&] { b.loss(); }), "'stem.weight' was frozen after the model was sharded"));
    b.model.stem->weight.set_requires_grad(true);
    b.sharded.backward(b.loss());
    b.model.register_parameter("extra", at::ones({3}));
    EXPECT_TRUE(contains(message_of([&] { b.optimizer.step(); }), "'extra' was added after the model was sharded"));
  });
  with_bench([](Bench& b) {
    b.sharded.backward(b.loss());
    b.model.head->bias = b.model.head->register_parameter("bias_2", at::ones({kNumClasses}));
    EXPECT_TRUE(contains(message_of([&] { b.optimizer.step(); }), "'head.bias_2' was added"));
  });
  run_thread_ranks(1, {}, [](World& world) {
    Bench b(world);
    b.model.to(at::kDouble);
    EXPECT_TRUE(contains(message_of([&] { b.loss(); }), "'stem.weight' was converted, moved or given other data"));
  });
}

TEST(ShardedRefuses, UnitsThatAreNotOfTheModel) {
  run_thread_ranks(1, {}, [](World& world) {
    BlockNet model, other;
    EXPECT_TRUE(contains(message_of([&] { Sharded(world, model, {.units = units_of<BlockImpl>(other)}); }),
                         "unit 'block_0' (tessera::BlockImpl) is not a submodule of the model"));
    EXPECT_TRUE(
        contains(message_of([&] { units_of<PlainNet>(model); }), "has no submodule of class tessera::PlainNet"));
    std::vector<Unit> nested = units_of<Block>(model);  // the holder's name does as well
    nested.push_back({"", "", model.blocks[1]->inner.get()});
    EXPECT_TRUE(contains(message_of([&] { Sharded(world, model, {.units = nested}); }),
                         "unit 'block_1.inner' is inside unit 'block_1'"));
    nested.back() = nested.front();
    EXPECT_TRUE(contains(message_of([&] { Sharded(world, model, {.units = nested}); }), "is listed twice"));
  });
}

TEST(ShardedRefuses, ToRunAModuleOfAnotherModel) {
  run_thread_ranks(1, {}, [](World& world) {
    Bench b(world);
    BlockNet other;
    EXPECT_TRUE(contains(message_of([&] { b.sharded.forward([&] { return other.forward(b.batch.x, b.sharded); }); }),
                         "is not part of the sharded model"));
  });
}

TEST(ShardedRefuses, APartOfAUnitOutsideIt) {
  run_thread_ranks(1, {}, [](World& world) {
    Bench b(world);
    EXPECT_TRUE(
        contains(message_of([&] {
                   b.sharded.forward([&] { return b.sharded.run(b.model.blocks[0]->inner, at::ones({1, kWidth})); });
                 }),
                 "'block_0.inner' was run outside its unit 'block_0'"));
  });
}

TEST(ShardedRefuses, ABlockThatIsCalledDirectlyWhereItIsReleased) {
  run_thread_ranks(2, {}, [](World& world) {
    Bench b(world);
    b.model.calls_directly = true;
    EXPECT_TRUE(contains(message_of([&] { b.loss(); }), "unit 'block_0' had not been run"));
  });
}

TEST(ShardedRefuses, OptionsOutOfTheirRange) {
  run_thread_ranks(1, {}, [](World& world) {
    BlockNet model;
    Sharded sharded(world, model);
    EXPECT_TRUE(contains(message_of([&] { Optimizer(sharded, AdamW{.beta1 = 1}); }), "beta1 is 1"));
    EXPECT_TRUE(contains(message_of([&] { Optimizer(sharded, AdamW{.learning_rate = -1}); }), "learning_rate is -1"));
    EXPECT_TRUE(contains(message_of([&] { Optimizer(sharded, Sgd{.nesterov = true}); }), "nesterov needs momentum"));
    Optimizer optimizer(sharded, Sgd{});
    EXPECT_TRUE(contains(message_of([&] { optimizer.step({.max_norm = -1}); }), "max_norm is -1"));
    EXPECT_TRUE(contains(message_of([&] { optimizer.set_learning_rate(0.0 / 0.0); }), "learning_rate is"));
  });
}

}  // namespace
}  // namespace tessera
