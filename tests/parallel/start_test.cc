// What an engine starts with: which units, whose values, and what happens to buffers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "model/families/bloom.h"
#include "model/language_model.h"
#include "model/parameters.h"
#include "parallel/engine_options.h"
#include "parallel/model_parts.h"
#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"
#include "support/cpu_memory.h"

namespace tessera {
namespace {

std::shared_ptr<LanguageModel> made_on(at::Device device) {
  BloomConfig config;
  config.vocab_size = 500;
  config.hidden_size = 64;
  config.num_layers = 6;
  config.num_heads = 4;
  return make_language_model(config.to_json(), "a test", at::device(device));
}

ParameterSource initialised(const LanguageModel& model) {
  return [first = model.initial_values()](const std::string& name, at::Tensor values) {
    initialise_parameter(values, name, first, /*seed=*/7);
  };
}

// A model on the meta device that is filled unit by unit equals the model that was created whole and then spread.
TEST(FirstValues, OfAModelWithoutMemoryAreThoseOfOneMadeWhole) {
  for (const char* strategy : {"ddp", "zero1", "full_shard"}) {
    run_thread_ranks(2, {}, [&](World& world) {
      const auto whole = made_on(at::kCPU);
      LanguageModel& made = *whole;
      initialise(made, 7);
      const auto without_memory = made_on(at::kMeta);
      LanguageModel& empty = *without_memory;
      EngineOptions options = options_of(strategy);
      options.first_values = initialised(empty);
      Engine engine(world, empty, empty.units(), options);
      for (FlatUnit& unit : engine.units()) unit.wait_gather();
      const auto expected = made.named_parameters();
      for (const auto& item : empty.named_parameters()) {
        EXPECT_TRUE(item.value().is_cpu());
        EXPECT_TRUE(at::equal(item.value(), expected[item.key()])) << strategy << ": " << item.key();
      }
    });
  }
}

TEST(FirstValues, ComeUnitByUnit) {
  start_counting_cpu_memory();
  run_thread_ranks(4, {}, [&](World& world) {
    const auto made = made_on(at::kMeta);
    LanguageModel& model = *made;
    EngineOptions options = options_of("full_shard");
    options.first_values = initialised(model);
    const std::int64_t before = live_cpu_bytes_of_thread();
    reset_peak_cpu_bytes_of_thread();
    Engine engine(world, model, model.units(), options);
    const std::int64_t peak = peak_cpu_bytes_of_thread() - before;
    std::int64_t shards = 0, largest = 0, whole = 0;
    for (const FlatUnit& unit : engine.units()) {
      const std::int64_t bytes = unit.layout().padded_numel() * 4;
      shards += bytes / 4;
      whole += bytes;
      largest = std::max(largest, bytes);
    }
    EXPECT_LE(peak, shards + largest);
    EXPECT_LT(peak, whole / 2);
  });
}

TEST(FirstValues, AreMissedWhereAParameterHasNone) {
  run_thread_ranks(1, {}, [](World& world) {
    const auto made = made_on(at::kMeta);
    LanguageModel& model = *made;
    EXPECT_THROW(Engine(world, model, model.units(), options_of("full_shard")), UsageError);
  });
}

TEST(FirstValues, OfEveryRankMayBeItsOwnUntilSynced) {
  run_thread_ranks(2, {}, [](World& world) {
    SmallModel model(3, 1 + static_cast<std::uint64_t>(world.rank()));
    const at::Tensor own = model.parameters()[0].detach().clone();
    EngineOptions options = options_of("ddp");
    options.spread.sync_module_states = false;
    const Engine engine(world, model, model.units(), options);
    EXPECT_TRUE(at::equal(model.parameters()[0].detach(), own));
  });
}

// Any choice of units gives the same training: only what is gathered when changes.
TEST(UnitRule, ChangesNoBits) {
  const auto trained = [](std::int64_t min_num_parameters, std::size_t expected_units) {
    std::vector<double> losses;
    run_thread_ranks(2, {}, [&](World& world) {
      SmallModel model;
      const auto units = select_units(model.units(), {.kinds = {}, .min_num_parameters = min_num_parameters});
      EXPECT_EQ(units.size(), expected_units);
      Engine engine(world, model, units, options_of("full_shard"));
      ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
      for (int step = 0; step < 5; ++step) {
        at::Tensor loss;
        {
          const auto pass = engine.forward();
          loss = model.loss(at::arange(8) + world.rank(), at::arange(8), engine);
        }
        engine.backward(loss);
        optimizer.update({.learning_rate = 1e-2, .divisor = 16});
        if (world.rank() == 0) losses.push_back(loss.item<double>());
      }
    });
    return losses;
  };
  const auto all_units = trained(0, 3);
  EXPECT_LT(all_units.back(), all_units.front());
  EXPECT_EQ(trained(1'000'000, 0), all_units);  // the root alone
}

struct Counted : UnitModel {
  Counted() : UnitModel("Counted") {
    weight = register_parameter("weight", at::ones({3}));
    mean = register_buffer("mean", at::zeros({2, 2}));
    count = register_buffer("count", at::zeros({}, at::kLong));
  }
  const std::vector<Unit>& units() const override { return none; }
  at::Tensor weight, mean, count;
  std::vector<Unit> none;
};

TEST(Buffers, AreTheFirstRanks) {
  run_thread_ranks(3, {}, [&](World& world) {
    Counted model;
    Engine engine(world, model, model.units(), options_of("zero2"));
    const at::NoGradGuard no_gradients;
    model.mean.fill_(world.rank() + 1);
    model.count.fill_(world.rank() + 5);
    { const auto no_sync_without_gradients = engine.forward(); }
    EXPECT_EQ(model.count.item<int>(), world.rank() + 5);
    {
      const at::AutoGradMode gradients(true);
      const auto pass = engine.forward();
      EXPECT_EQ(model.mean[1][1].item<float>(), 1);
      EXPECT_EQ(model.count.item<int>(), 5);
      model.mean.fill_(world.rank() + 1);
    }
    const at::AutoGradMode gradients(true);
    const auto second_micro_step = engine.forward();
    EXPECT_EQ(model.mean[0][0].item<int>(), world.rank() + 1) << "alike at the first pass of a step only";
  });
}

}  // namespace
}  // namespace tessera
