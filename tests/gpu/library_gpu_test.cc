// The public classes on a GPU: a user's model trains, is saved and resumes, with and without offload.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "library/models.h"
#include "support/test_folder.h"
#include "tessera/checkpoint.h"
#include "tessera/optimizer.h"
#include "tessera/shard.h"

namespace tessera {
namespace {

constexpr int kNumSteps = 6;

// The losses of steps `first` to `last`. If given, weights and optimizer are loaded from `load` and saved to `save`.
std::vector<double> losses_of(World& world, ShardOptions options, int first, int last, const std::string& load = {},
                              const std::string& save = {}) {
  BlockNet model;  // on the CPU: Sharded moves it
  options.units = units_of<Block>(model);
  Sharded sharded(world, model, options);
  Optimizer optimizer(sharded, AdamW{.learning_rate = 1e-2});
  if (!load.empty()) {
    load_weights(sharded, load + ".weights");
    load_optimizer(optimizer, load + ".optimizer");
  }
  std::vector<double> losses;
  for (int step = first; step < last; ++step) {
    const Batch batch = batch_of(step, 0, 1, options.compute_type);
    const at::Tensor x = batch.x.to(world.device()), y = batch.y.to(world.device());
    const at::Tensor loss = sharded.forward([&] { return loss_of(model.forward(x, sharded), y); });
    EXPECT_EQ(loss.device(), world.device());
    sharded.backward(loss);
    optimizer.step({.max_norm = 1});
    losses.push_back(mean_over_ranks(world, loss));
  }
  if (!save.empty()) {
    save_weights(sharded, save + ".weights");
    save_optimizer(optimizer, save + ".optimizer");
  }
  return losses;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], tolerance * expected[i]) << what << ", step " << i;
  }
}

class LibraryOnGpu : public testing::Test {
 protected:
  LibraryOnGpu() {
    WorldOptions options;
    options.banner = false;
    world_ = World::create(options);
  }
  void SetUp() override { ASSERT_TRUE(world_->device().is_cuda()); }
  World& world() { return *world_; }

 private:
  std::unique_ptr<World> world_;
};

TEST_F(LibraryOnGpu, TrainsAsACpuDoes) {
  std::vector<double> on_cpu;
  run_thread_ranks(1, {},
                   [&](World& cpu) { on_cpu = losses_of(cpu, {.spread = {.strategy = "single"}}, 0, kNumSteps); });
  for (const char* strategy : {"single", "zero2", "full_shard"}) {
    expect_near(losses_of(world(), {.spread = {.strategy = strategy}}, 0, kNumSteps), on_cpu, 1e-4, strategy);
  }
}

TEST_F(LibraryOnGpu, OffloadsAndGoesOnFromFiles) {
  const TestFolder folder;
  const std::string files = folder / "saved";
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const ShardOptions plain{.spread = {.strategy = "full_shard"}, .compute_type = type};
    ShardOptions offloaded = plain;
    offloaded.spread.offload_optimizer = offloaded.spread.offload_parameters = true;
    const double tolerance = type == at::kFloat ? 1e-5 : 2e-2;  // the update runs on another processor
    const std::vector<double> expected = losses_of(world(), plain, 0, kNumSteps);
    expect_near(losses_of(world(), offloaded, 0, kNumSteps), expected, tolerance, "offloaded");
    losses_of(world(), offloaded, 0, 3, {}, files);
    expect_near(losses_of(world(), plain, 3, kNumSteps, files), {expected.begin() + 3, expected.end()}, tolerance,
                "resumed without offload");
    losses_of(world(), plain, 0, 3, {}, files);
    expect_near(losses_of(world(), offloaded, 3, kNumSteps, files), {expected.begin() + 3, expected.end()}, tolerance,
                "resumed with offload");
  }
}

}  // namespace
}  // namespace tessera
