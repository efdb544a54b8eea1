// State in host memory: the same bits as on the device, the bytes of the formula, and updates during computation. CPU
// memory plays both device and host: every copy between the two is made.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "core/error.h"
#include "parallel/jobs.h"
#include "parallel/small_model.h"
#include "parallel/unit_layout.h"
#include "support/cpu_memory.h"

namespace tessera {
namespace {

struct OffloadCase {
  Row row;
  int num_ranks = 1;
};
void PrintTo(const OffloadCase& c, std::ostream* out) {
  *out << c.row.name() << " on " << c.num_ranks;
}

std::vector<OffloadCase> offload_cases() {
  std::vector<OffloadCase> cases;
  for (const int num_ranks : {1, 3}) {
    for (const Row& row : rows_of_table(num_ranks)) {
      if (row.placement().needs_equal_nodes()) continue;  // Parity.* covers them
      cases.push_back({{row.strategy, true, false}, num_ranks});
      if (!row.placement().parameters.is_split()) continue;
      cases.push_back({{row.strategy, true, true}, num_ranks});
      cases.push_back({{row.strategy, false, true}, num_ranks});
    }
  }
  return cases;
}

class Offload : public testing::TestWithParam<OffloadCase> {
 protected:
  Trained trained(Training how) { return train_on_threads({GetParam().num_ranks}, odd_job().make, how); }
  Training on_device(at::ScalarType type, int num_micro_steps) {
    Training how = odd_job().how;
    how.row.strategy = GetParam().row.strategy;
    how.type = type;
    how.num_micro_steps = num_micro_steps;
    how.num_steps = 5;
    return how;
  }
};

TEST_P(Offload, GivesTheBitsOfTheDevice) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const int num_micro_steps : {1, 4}) {
      Training how = on_device(type, num_micro_steps);
      const Trained expected = trained(how);
      how.row = GetParam().row;
      for (const auto updates : {HostUpdates::kAtOnce, HostUpdates::kInBackground}) {
        how.host_updates = updates;
        expect_same_bits(trained(how), expected, how.row.name());
      }
    }
  }
}

TEST_P(Offload, UpdatesDuringBackwardGiveTheBitsOfLaterOnes) {
  Training how = on_device(at::kBFloat16, 2);
  how.max_norm = 0;
  const Trained expected = trained(how);
  how.update_during_backward = true;
  expect_same_bits(trained(how), expected, "on the device");
  how.row = GetParam().row;
  for (const auto updates : {HostUpdates::kAtOnce, HostUpdates::kInBackground}) {
    how.host_updates = updates;
    expect_same_bits(trained(how), expected, how.row.name());
  }
}

TEST_P(Offload, UnitsThatStayOnTheDeviceChangeNoBit) {
  for (const bool during_backward : {false, true}) {
    Training how = on_device(at::kBFloat16, 2);
    if (during_backward) how.max_norm = 0;
    const Trained expected = trained(how);
    how.update_during_backward = during_backward;
    how.row = GetParam().row;
    how.host_updates = HostUpdates::kInBackground;
    for (const std::int64_t number : {1, 2, 100}) {
      how.row.units_on_device = number;
      expect_same_bits(trained(how), expected, how.row.name());
    }
  }
}

TEST_P(Offload, DelayedUpdatesGiveTheSameBitsInEveryRow) {
  if (!GetParam().row.offload_optimizer) GTEST_SKIP() << "an update on the device is never delayed";
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const int num_micro_steps : {1, 2}) {
      Training how = on_device(type, num_micro_steps);
      how.row = {GetParam().row.placement().gradients.is_split() ? "zero2" : "zero1", true, false, true};
      how.host_updates = HostUpdates::kAtOnce;
      const Trained expected = trained(how);
      how.row = GetParam().row;
      how.row.delayed_update = true;
      for (const auto updates : {HostUpdates::kAtOnce, HostUpdates::kInBackground}) {
        how.host_updates = updates;
        expect_same_bits(trained(how), expected, how.row.name());
      }
    }
  }
}

TEST_P(Offload, TakesTheBytesOfTheFormula) {
  start_counting_cpu_memory();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const auto& [accumulates, delayed] : {std::pair(false, false), {true, false}, {false, true}}) {
      if (delayed && !GetParam().row.offload_optimizer) continue;
      const std::int64_t before = live_cpu_bytes();
      run_thread_ranks(GetParam().num_ranks, {}, [&](World& world) {
        SmallModel model;
        EngineOptions options;
        options.spread = GetParam().row.spread();
        options.spread.delayed_update = delayed;
        options.spread.units_on_device = delayed ? 0 : 2;
        options.types = {type, type, accumulates};
        options.host_memory_is_separate = true;
        Engine engine(world, model, model.units(), options);
        ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
        std::int64_t expected = 0;
        for (std::size_t i = 0; i < engine.units().size(); ++i) {
          const FlatUnit& unit = engine.units()[i];
          const Placement row = placement_of_unit(engine.placement(), options.spread, i, engine.units().size());
          const UnitBytes host = host_unit_bytes(unit.layout(), row, options.types, 2, /*on_gpu=*/false);
          expected += unit_bytes(unit.layout(), row, options.types, 2, 1, /*on_gpu=*/false).resident();
          expected += host.resident() + host.gradient;
        }
        for (int step = 0; step < 3; ++step) {
          world.all().barrier()->wait();
          const std::int64_t alive = live_cpu_bytes() - before;
          world.all().barrier()->wait();
          EXPECT_EQ(alive, expected * world.size()) << "after " << step << " steps";
          at::Tensor loss;
          {
            const auto pass = engine.forward();
            loss = model.loss(at::arange(8), at::arange(8) + 1, engine);
          }
          engine.backward(loss);
          loss.reset();
          optimizer.update({.learning_rate = 1e-3});
          for (FlatUnit& unit : engine.units()) unit.finish_update();
        }
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Offload, testing::ValuesIn(offload_cases()));

TEST(OffloadOnACpu, ChangesNothingUnlessItsMemoryIsSeparate) {
  run_thread_ranks(1, {}, [](World& world) {
    SmallModel model;
    EngineOptions options;
    options.spread = SpreadOptions{.strategy = "full_shard", .offload_optimizer = true, .offload_parameters = true};
    const Engine engine(world, model, model.units(), options);
    EXPECT_FALSE(engine.placement().optimizer.is_on_host());
    EXPECT_FALSE(engine.placement().parameters.is_on_host());
  });
}

TEST(UpdatesDuringBackward, AreRefusedWithClipping) {
  run_thread_ranks(1, {}, [](World& world) {
    SmallModel model;
    Engine engine(
        world, model, model.units(),
        {.spread = {.strategy = "single"}, .types = {}, .is_exempt_from_decay = {}, .device = {}, .first_values = {}});
    ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
    EXPECT_THROW(optimizer.update_during_backward({.learning_rate = 1e-3, .max_norm = 1}), UsageError);
  });
}

TEST(HostUpdatesInBackground, AnErrorReachesTheNextUseOfTheUnit) {
  UpdateWorker worker;
  const auto always = [] { return true; };
  const auto failed = worker.begin([] { throw Error("out of luck"); }, always);
  const auto done = worker.begin([] {}, always);
  EXPECT_THROW(failed.get(), Error);
  EXPECT_NO_THROW(done.get());
}

TEST(HostUpdatesInBackground, WhatIsReadyGoesAheadOfWhatWaitsFromTheOtherEnd) {
  UpdateWorker worker;
  std::promise<void> all_are_given;
  std::string order;
  std::atomic<bool> first_is_ready = false;
  const auto always = [] { return true; };
  const auto named = [&](char name, int num_before) {
    return [&order, &first_is_ready, name, num_before] {
      order += name;
      if (std::ssize(order) == num_before) first_is_ready = true;
    };
  };
  worker.begin([&] { all_are_given.get_future().wait(); }, always);
  worker.begin(named('a', 0), [&] { return first_is_ready.load(); });
  std::vector<std::shared_future<void>> done;
  for (const char name : {'b', 'c', 'd', 'e'}) done.push_back(worker.begin(named(name, 2), always));
  all_are_given.set_value();
  for (const auto& each : done) each.get();
  EXPECT_EQ(order, "edabc");
}

}  // namespace
}  // namespace tessera
