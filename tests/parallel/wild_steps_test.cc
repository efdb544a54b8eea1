// Steps that run other units each time, with evaluations between them: every row gives ddp's bits, wherever its state
// is and whenever it is updated.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parallel/chain_model.h"
#include "parallel/jobs.h"
#include "parallel/sharded_optimizer.h"

namespace tessera {
namespace {

struct Way {
  std::string row = "ddp";
  bool offload_optimizer = false, offload_parameters = false, in_background = false, during_backward = false;
  at::ScalarType type = at::kFloat;

  std::string name() const {
    return row + (offload_optimizer ? ", optimizer" : "") + (offload_parameters ? ", parameters" : "") +
           (in_background ? ", in background" : "") + (during_backward ? ", during backward" : "") + ", " +
           c10::toString(type);
  }
};

const std::vector<std::vector<std::size_t>> kOrders = {{0, 1, 2}, {1}, {0, 1, 2, 0}, {2, 0}, {}, {0, 1}, {2, 1, 0}};

std::vector<double> losses_of(const Way& way) {
  std::vector<double> losses;
  WorldOptions nodes;
  nodes.ranks_per_node = 2;
  run_thread_ranks(4, nodes, [&](World& world) {
    Chain model;
    for (at::Tensor& parameter : model.blocks[1]->parameters()) parameter.set_requires_grad(false);
    EngineOptions options;
    options.spread = SpreadOptions{
        .strategy = way.row, .offload_optimizer = way.offload_optimizer, .offload_parameters = way.offload_parameters};
    options.types = {way.type, at::kFloat, false};
    options.host_memory_is_separate = true;
    Engine engine(world, model, model.units(), options);
    ShardedOptimizer optimizer(engine, choose_optimizer("adamw"),
                               way.in_background ? HostUpdates::kInBackground : HostUpdates::kAtOnce);
    const auto forward = [&](int input, const std::vector<std::size_t>& order) {
      const auto pass = engine.forward();
      return model.loss(input_of(input).to(way.type), order, engine);
    };
    const auto note = [&](const at::Tensor& loss) {
      if (world.rank() == 0) losses.push_back(loss.item<double>());
    };
    for (const std::vector<std::size_t>& order : kOrders) {
      const at::Tensor loss = forward(world.rank(), order);
      const UpdateArguments arguments{.learning_rate = 0.02, .divisor = 4};
      if (way.during_backward) optimizer.update_during_backward(arguments);
      engine.backward(loss);
      optimizer.update(arguments);
      note(loss);
      const at::NoGradGuard evaluation;
      if (order.size() != 3) note(forward(3, {2}));
    }
    const at::NoGradGuard evaluation;
    note(forward(0, {0, 1, 2}));
  });
  return losses;
}

void expect_the_bits_of_ddp(at::ScalarType type) {
  Way plain;
  plain.type = type;
  const std::vector<double> expected = losses_of(plain);
  for (const std::string row : {"ddp", "zero1", "zero2", "shard_grad_op", "full_shard"}) {
    for (const int bits : {0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15}) {
      Way way{row, (bits & 1) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 2) != 0, type};
      if (way.offload_parameters && !placement_of(row).parameters.is_split()) continue;
      EXPECT_EQ(losses_of(way), expected) << way.name();
    }
  }
}

TEST(WildSteps, GiveTheBitsOfDdpInEveryRow) {
  expect_the_bits_of_ddp(at::kFloat);
}

TEST(WildSteps, GiveThemInBfloatToo) {
  expect_the_bits_of_ddp(at::kBFloat16);
}

// Sums across nodes equal those of flat ranks, in the same order.
TEST(WildSteps, GiveThemAcrossNodes) {
  const std::vector<double> expected = losses_of({});
  for (const int bits : {0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15}) {
    for (const std::string& row : rows_that_use_nodes()) {
      const Way way{row, (bits & 1) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 2) != 0, at::kFloat};
      EXPECT_EQ(losses_of(way), expected) << way.name();
    }
  }
}

}  // namespace
}  // namespace tessera
