// What libtorch alone would let pass: buffers that move twice, models and optimizers that do not belong together.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/normalization.h>

#include <map>

#include "library/models.h"
#include "support/contains.h"
#include "support/message_of.h"
#include "tessera/optimizer.h"
#include "tessera/shard.h"

namespace tessera {
namespace {

struct NormedBlockImpl : torch::nn::Module {
  NormedBlockImpl() {
    inner = register_module("inner", torch::nn::Linear(kNumInputs, kNumInputs));
    norm = register_module("norm", torch::nn::BatchNorm1d(kNumInputs));
  }
  at::Tensor forward(const at::Tensor& x) { return norm(inner(x)).tanh(); }

  torch::nn::Linear inner{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(NormedBlock);

std::map<std::string, at::Tensor> buffers_after_steps(World& world, const std::string& strategy, bool recomputes) {
  torch::nn::Sequential model(NormedBlock(), NormedBlock(), torch::nn::Linear(kNumInputs, kNumClasses));
  fill(*model);
  Sharded sharded(world, *model, {.spread = {.strategy = strategy}, .recomputes = recomputes});
  Optimizer optimizer(sharded, Sgd{.learning_rate = 0.1});
  for (int step = 0; step < 3; ++step) {
    const Batch batch = batch_of(step, world.rank(), world.size());
    sharded.backward(loss_of(sharded.forward(batch.x), batch.y));
    optimizer.step();
  }
  std::map<std::string, at::Tensor> buffers;
  for (const auto& item : model->named_buffers()) buffers[item.key()] = item.value().clone();
  return buffers;
}

TEST(RecomputedUnits, MoveTheirBatchNormStatisticsOnce) {
  for (const char* strategy : {"ddp", "zero3"}) {
    SCOPED_TRACE(strategy);
    run_thread_ranks(2, {}, [&](World& world) {
      const auto expected = buffers_after_steps(world, strategy, false);
      const auto found = buffers_after_steps(world, strategy, true);
      EXPECT_EQ(expected.at("0.norm.num_batches_tracked").item<int>(), 3);
      for (const auto& [name, values] : expected) EXPECT_TRUE(at::equal(found.at(name), values)) << name;
    });
  }
}

TEST(ShardedRefuses, AModelOfAnotherSharded) {
  run_thread_ranks(2, {}, [](World& world) {
    for (const char* strategy : {"ddp", "zero3"}) {
      BlockNet model;
      {
        const Sharded first(world, model, {.spread = {.strategy = strategy}});
        EXPECT_TRUE(contains(message_of([&] { Sharded(world, model); }),
                             "'stem.weight' of the model (tessera::BlockNet) belongs to a tessera::Sharded that still "
                             "lives"));
        EXPECT_TRUE(contains(message_of([&] { Sharded(world, *model.blocks[1]); }), "'inner.weight' of the model"));
      }
      if (strategy == std::string("ddp")) Sharded(world, model);
    }
  });
}

TEST(ShardedRefuses, AModelWithoutValues) {
  run_thread_ranks(1, {}, [](World& world) {
    torch::nn::Module model;
    model.register_parameter("weight", at::empty({3}, at::device(at::kMeta)));
    EXPECT_TRUE(contains(message_of([&] { Sharded(world, model); }),
                         "'weight' is on the meta device, so it has no values: give ShardOptions::first_values"));
  });
}

TEST(ShardedRefuses, ATypeOfReductionThatItCannotAddIn) {
  run_thread_ranks(1, {}, [](World& world) {
    BlockNet model;
    EXPECT_EQ(message_of([&] { Sharded(world, model, {.reduce_type = at::kDouble}); }),
              "reduce_type Double: expected Float, BFloat16 or Half");
  });
}

TEST(ShardedRefuses, OptimizersThatDifferBetweenRanks) {
  run_thread_ranks(2, {}, [](World& world) {
    BlockNet model;
    Sharded sharded(world, model, {.spread = {.strategy = "ddp"}});
    const double own = world.rank() == 0 ? 0.1 : 0.2;
    const std::string message = message_of([&] { Optimizer(sharded, AdamW{.learning_rate = own}); });
    if (world.rank() == 0) {
      EXPECT_EQ(message, "nothing was thrown");
    } else {
      EXPECT_TRUE(contains(message, "rank 1 does not have rank 0's optimizer: it is adamw with learning rate 0.1"))
          << message;
    }
  });
}

TEST(ShardedRefuses, AModelWithoutValuesWhereTheyAreNeededOnly) {
  run_thread_ranks(2, {}, [](World& world) {
    torch::nn::Module model;
    model.register_parameter("weight", at::empty({3}, at::device(at::kMeta)));
    ShardOptions options{.spread = {.strategy = "zero3"}};
    if (world.rank() == 0) options.first_values = [](const std::string&, at::Tensor values) { values.fill_(2); };
    EXPECT_EQ(message_of([&] { Sharded(world, model, options); }), "nothing was thrown");
  });
}

TEST(ShardedRefuses, ABlockThatBeginsWithANormAndIsCalledDirectly) {
  run_thread_ranks(2, {}, [](World& world) {
    torch::nn::Sequential model(torch::nn::LayerNorm(torch::nn::LayerNormOptions({kNumInputs})),
                                torch::nn::Linear(kNumInputs, kNumClasses));
    Sharded sharded(world, *model, {.spread = {.strategy = "zero3"}});
    const at::Tensor x = at::ones({2, kNumInputs});
    EXPECT_TRUE(contains(message_of([&] { sharded.forward([&] { return model->forward(x); }); }),
                         "unit '0' had not been run: if the model calls it directly, use runner.run(block, x)"));
  });
}

// The advice about blocks that are called directly is for parameters without data alone.
TEST(ShardedRefuses, AnInputOfTheWrongTypeWithLibtorchsOwnWords) {
  run_thread_ranks(2, {}, [](World& world) {
    BlockNet model;
    Sharded sharded(world, model, {.spread = {.strategy = "full_shard"}, .units = units_of<BlockImpl>(model)});
    const at::Tensor wrong = at::ones({2, kNumInputs}, at::kDouble);
    try {
      sharded.forward([&] { return model.forward(wrong, sharded); });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const c10::Error& error) {
      EXPECT_TRUE(contains(error.what(), "dtype")) << error.what();
      EXPECT_FALSE(contains(error.what(), "had not been run")) << error.what();
    }
  });
}

}  // namespace
}  // namespace tessera
