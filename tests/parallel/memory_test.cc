// Measured memory against the formula, to the byte. Ranks are threads: the live bytes are those of all ranks together.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"
#include "parallel/unit_layout.h"
#include "support/cpu_memory.h"

namespace tessera {
namespace {

struct MemoryCase {
  std::string strategy;
  int num_ranks = 2;
  at::ScalarType type = at::kFloat;
  int num_micro_steps = 1;
};

void PrintTo(const MemoryCase& c, std::ostream* out) {
  *out << c.strategy << " on " << c.num_ranks << " ranks, " << c10::toString(c.type) << ", " << c.num_micro_steps;
}

struct Sums {
  std::int64_t resident = 0, gradients = 0;
};

Sums formula(Engine& engine, const EngineOptions& options) {
  Sums sums;
  for (const FlatUnit& unit : engine.units()) {
    const UnitBytes bytes = unit_bytes(unit.layout(), engine.placement(), options.types, 2, 1, /*on_gpu=*/false);
    sums.resident += bytes.resident();
    sums.gradients += bytes.gradient;
  }
  return sums;
}

class Memory : public testing::TestWithParam<MemoryCase> {};

TEST_P(Memory, OfStateIsTheFormulaToTheByte) {
  const MemoryCase& with = GetParam();
  start_counting_cpu_memory();
  const std::int64_t before = live_cpu_bytes();
  run_thread_ranks(with.num_ranks, {}, [&](World& world) {
    SmallModel model;
    EngineOptions options;
    options.spread.strategy = with.strategy;
    options.types = {with.type, with.type, with.num_micro_steps > 1};
    Engine engine(world, model, model.units(), options);
    ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
    const Sums expected = formula(engine, options);
    // All ranks wait before and after the reading, so that none holds a tensor of its own.
    const auto expect_alive = [&](std::int64_t bytes, const char* when) {
      world.all().barrier()->wait();
      const std::int64_t alive = live_cpu_bytes() - before;
      world.all().barrier()->wait();
      EXPECT_EQ(alive, bytes * with.num_ranks) << when;
    };
    expect_alive(expected.resident, "at first");
    for (int step = 0; step < 2; ++step) {
      for (int i = 0; i < with.num_micro_steps; ++i) {
        const at::Tensor ids = at::arange(8);
        at::Tensor loss;
        {
          const auto pass = engine.forward();
          loss = model.loss(ids, ids + 1, engine);
        }
        engine.backward(loss, i + 1 == with.num_micro_steps);
      }
      engine.wait_for_gradients();
      expect_alive(expected.resident + expected.gradients, "before the update");
      optimizer.update({.learning_rate = 1e-3});
      for (FlatUnit& unit : engine.units()) {
        if (unit.is_on_its_way()) unit.wait_gather();
      }
      expect_alive(expected.resident, "after the update");
    }
  });
}

std::vector<MemoryCase> cases() {
  std::vector<MemoryCase> all;
  for (const char* strategy : {"ddp", "zero1", "zero2", "full_shard", "shard_grad_op"}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      for (const int ranks : {1, 2, 3}) all.push_back({strategy, ranks, type, 1});
      all.push_back({strategy, 2, type, 2});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rows, Memory, testing::ValuesIn(cases()));

}  // namespace
}  // namespace tessera
