// What an engine refuses before it does harm.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"
#include "parallel_faults/ranks.h"
#include "support/contains.h"

namespace tessera {
namespace {

std::string refusal_of(const std::function<void(World&)>& body) {
  return messages_of(2, body)[1];
}

TEST(Refusal, OfAnUpdateDuringABackwardThatNeverCame) {
  EXPECT_TRUE(contains(refusal_of([](World& world) {
                         SmallModel model;
                         Engine engine(world, model, model.units(), options_of("zero2"));
                         ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
                         optimizer.update_during_backward({.learning_rate = 1e-3});
                         optimizer.update({.learning_rate = 1e-3});
                       }),
                       "was not followed by the last micro-step's backward()"));
}

TEST(Refusal, OfAUnitThatIsNotOfTheModel) {
  const std::string message = refusal_of([](World& world) {
    SmallModel model, other;
    Engine engine(world, model, other.units(), options_of("full_shard"));
  });
  EXPECT_TRUE(contains(message, "unit block_0 is not a module of the model"));
  const std::string of_null = refusal_of([](World& world) {
    SmallModel model;
    Engine engine(world, model, {{"lost", "Block", nullptr}}, options_of("full_shard"));
  });
  EXPECT_TRUE(contains(of_null, "unit lost is not a module of the model"));
}

TEST(Refusal, OfAModuleThatIsTwoUnits) {
  const std::string message = refusal_of([](World& world) {
    SmallModel model;
    Engine engine(world, model, {model.units()[0], model.units()[1], model.units()[0]}, options_of("full_shard"));
  });
  EXPECT_TRUE(contains(message, "unit block_0"));
  EXPECT_TRUE(contains(message, "twice"));
}

TEST(Refusal, OfParametersThatShareMemoryWithoutBeingOne) {
  const std::string message = refusal_of([](World& world) {
    torch::nn::Module model;
    const at::Tensor table = at::ones({6, 4});
    model.register_parameter("embedding", table);
    model.register_parameter("head", table.detach().narrow(0, 2, 4));
    Engine engine(world, model, {}, options_of("ddp"));
  });
  EXPECT_TRUE(contains(message, "parameters embedding and head share memory")) << message;
  // Tensors side by side in one buffer, as libtorch lays out the weights of an LSTM, are not shared.
  EXPECT_EQ(refusal_of([](World& world) {
              torch::nn::Module model;
              const at::Tensor table = at::ones({6, 4});
              model.register_parameter("first", table.narrow(0, 0, 2).detach());
              model.register_parameter("second", table.narrow(0, 2, 4).detach());
              Engine engine(world, model, {}, options_of("ddp"));
            }),
            "");
}

TEST(Refusal, OfParametersThatAreNoFloats) {
  for (const at::ScalarType type : {at::kLong, at::kDouble}) {
    const std::string message = refusal_of([&](World& world) {
      torch::nn::Module model;
      model.register_parameter("weight", at::ones({3}));
      model.register_parameter("places", at::ones({3}, type), /*requires_grad=*/false);
      Engine engine(world, model, {}, options_of("ddp"));
    });
    EXPECT_TRUE(contains(message, "parameter places is "));
  }
}

TEST(Refusal, OfHybridShardOnNodesOfDifferentSizes) {
  WorldOptions nodes_of_two;
  nodes_of_two.ranks_per_node = 2;
  try {
    run_thread_ranks(3, nodes_of_two, [](World& world) {
      SmallModel model;
      Engine engine(world, model, model.units(), options_of("hybrid_shard"));
    });
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "node 0 has 2 and node 1 has 1"));
  }
}

}  // namespace
}  // namespace tessera
