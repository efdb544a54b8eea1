// The engine on a GPU: every row, with and without offload, gives the losses of CPU ranks. Runs alone, or under mpirun
// with several ranks that share the GPU.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"

namespace tessera {
namespace {

std::unique_ptr<World> world;  // one per process

struct How {
  SpreadOptions spread;
  at::Device device = at::kCPU;
  at::ScalarType type = at::kFloat;
  int num_micro_steps = 1;
  HostUpdates host_updates = HostUpdates::kAuto;
  bool update_during_backward = false;
};

constexpr int kNumSteps = 20;
constexpr std::int64_t kTokensOfRank = 12;

std::vector<double> losses_of(const How& how) {
  SmallModel model;
  EngineOptions options;
  options.spread = how.spread;
  options.types = {how.type, how.type, how.num_micro_steps > 1};
  options.device = how.device;
  options.host_memory_is_separate = true;  // for the CPU that it is compared with
  Engine engine(*world, model, model.units(), options);
  ShardedOptimizer optimizer(engine, choose_optimizer("adamw"), how.host_updates);
  std::vector<double> losses;
  for (int step = 0; step < kNumSteps; ++step) {
    at::Tensor sum = at::zeros({1}, how.device);
    const UpdateArguments arguments{.learning_rate = 3e-3,
                                    .divisor = static_cast<double>(kTokensOfRank * how.num_micro_steps * world->size()),
                                    .max_norm = how.update_during_backward ? 0.0 : 1.0};
    for (int i = 0; i < how.num_micro_steps; ++i) {
      const auto seed = static_cast<std::uint64_t>(1000 * step + 10 * i + world->rank());
      const at::Tensor ids =
          at::randint(SmallModel::kVocabulary, {2, kTokensOfRank}, at::detail::createCPUGenerator(seed), at::kLong)
              .to(how.device);
      at::Tensor loss;
      {
        const auto pass = engine.forward();
        loss = model.loss(ids[0], ids[1], engine);
      }
      const bool is_last = i + 1 == how.num_micro_steps;
      if (is_last && how.update_during_backward) optimizer.update_during_backward(arguments);
      engine.backward(loss, is_last);
      sum += loss.detach();
    }
    optimizer.update(arguments);
    world->all().all_reduce(sum)->wait();
    losses.push_back(sum.item<double>() / arguments.divisor);
  }
  return losses;
}

void expect_close(const std::vector<double>& found, const std::vector<double>& expected, double relative,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], relative * std::abs(expected[i])) << what << ", step " << i;
  }
}

std::vector<std::string> rows() {
  std::vector<std::string> names = strategy_names();
  if (world->size() > 1) std::erase(names, "single");
  return names;
}

How on_gpu(const std::string& strategy, bool offload_optimizer = false, bool offload_parameters = false) {
  return {.spread = SpreadOptions{.strategy = strategy,
                                  .offload_optimizer = offload_optimizer,
                                  .offload_parameters = offload_parameters},
          .device = world->device()};
}

TEST(EngineOnGpu, EveryRowGivesTheSameLosses) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const int num_micro_steps : {1, 4}) {
      std::vector<double> expected;
      for (const std::string& row : rows()) {
        How how = on_gpu(row);
        how.type = type;
        how.num_micro_steps = num_micro_steps;
        const std::vector<double> losses = losses_of(how);
        if (expected.empty()) expected = losses;
        const bool adds_otherwise = num_micro_steps > 1 && type != at::kFloat;  // two ways to add: rounding differs
        expect_close(losses, expected, adds_otherwise ? 1e-2 : 1e-6, row);
      }
      EXPECT_LT(expected.back(), expected.front());
    }
  }
}

TEST(EngineOnGpu, GivesTheLossesOfCpus) {
  How on_cpu = on_gpu("ddp");
  on_cpu.device = at::kCPU;
  expect_close(losses_of(on_gpu("full_shard")), losses_of(on_cpu), 1e-4, "full_shard");
}

TEST(EngineOnGpu, OffloadGivesTheSameLosses) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const std::string& row : rows()) {
      How how = on_gpu(row);
      how.type = type;
      const std::vector<double> expected = losses_of(how);
      for (const bool offload_parameters : {false, true}) {
        if (offload_parameters && !placement_of(how.spread).parameters.is_split()) continue;
        for (const auto updates : {HostUpdates::kAtOnce, HostUpdates::kInBackground}) {
          How offloaded = how;
          offloaded.spread =
              SpreadOptions{.strategy = row, .offload_optimizer = true, .offload_parameters = offload_parameters};
          offloaded.host_updates = updates;
          // The update runs on another processor: bf16 may round the other way.
          for (const std::int64_t on_device : {0, 2}) {
            offloaded.spread.units_on_device = on_device;
            expect_close(losses_of(offloaded), expected, type == at::kFloat ? 1e-6 : 1e-3,
                         row + (offload_parameters ? ", all offloaded" : ", optimizer offloaded"));
          }
        }
      }
    }
  }
}

TEST(EngineOnGpu, DelayedUpdatesAreOneStepBehindInEveryRow) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    How on_cpu{.spread = SpreadOptions{.strategy = "zero2", .offload_optimizer = true, .delayed_update = true}};
    on_cpu.type = type;
    const std::vector<double> expected = losses_of(on_cpu);
    for (const auto& [row, offload_parameters] :
         {std::pair("zero1", false), {"zero2", false}, {"zero3", false}, {"zero3", true}, {"shard_grad_op", true}}) {
      for (const auto updates : {HostUpdates::kAtOnce, HostUpdates::kInBackground}) {
        How how{.spread = SpreadOptions{.strategy = row,
                                        .offload_optimizer = true,
                                        .offload_parameters = offload_parameters,
                                        .delayed_update = true},
                .device = world->device()};
        how.type = type;
        how.host_updates = updates;
        expect_close(losses_of(how), expected, type == at::kFloat ? 1e-4 : 1e-2, row);
      }
    }
  }
}

TEST(EngineOnGpu, UpdatesDuringBackwardGiveTheSameLosses) {
  for (const char* row : {"zero2", "full_shard"}) {
    How how = on_gpu(row, true, false);
    how.update_during_backward = true;
    const std::vector<double> losses = losses_of(how);
    How after = how;
    after.host_updates = HostUpdates::kAtOnce;
    expect_close(losses, losses_of(after), 1e-6, row);
    EXPECT_LT(losses.back(), losses.front());
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  tessera::WorldOptions options;
  options.backend = "mpi";
  options.device = "cuda";
  options.share_gpus = true;
  options.banner = false;
  options.comm_timeout = std::chrono::seconds(60);
  tessera::world = tessera::World::create(options);
  const int status = RUN_ALL_TESTS();
  tessera::world.reset();
  return status;
}
