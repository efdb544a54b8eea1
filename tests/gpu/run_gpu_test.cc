// What happens around a run on a GPU: device readings, and ranks that agree to stop without waiting for the GPU.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <csignal>

#include "comm/gpu_support.h"
#include "monitor/nvml.h"
#include "monitor/utilisation.h"
#include "train/stop_signals.h"

namespace tessera {

std::unique_ptr<World> world;

namespace {

TEST(UtilisationOnGpu, AllocatorAndNvmlAreRead) {
  const UsageReader read = usage_reader(*world);
  const Usage before = read();
  const at::Tensor block =
      at::ones({std::int64_t{64} << 20}, at::dtype(at::kFloat).device(world->device()));  // 256 MiB
  gpu_support()->synchronize();
  const Usage after = read();
  EXPECT_NEAR(*after.allocated_bytes - *before.allocated_bytes, block.nbytes(), 1 << 21);
  EXPECT_GE(*after.reserved_bytes, *after.allocated_bytes);
  EXPECT_GE(after.peak_bytes, *after.allocated_bytes);
  ASSERT_TRUE(after.used_bytes) << "no NVML for " << gpu_support()->info(world->device().index()).pci_address;
  EXPECT_GE(*after.used_bytes, *after.reserved_bytes);
  ASSERT_TRUE(after.busy_percent);
  EXPECT_GE(*after.busy_percent, 0);
  EXPECT_LE(*after.busy_percent, 100);
}

TEST(UtilisationOnGpu, TheSummaryHasTheContractsKeys) {
  UtilisationMeter meter(usage_reader(*world), true);
  meter.begin();
  meter.sample();
  const LogRecord summary = meter.summary(*world);
  for (const char* key : {"avg_mem_alloc_MB", "avg_mem_reserved_MB", "avg_mem_total_MB", "avg_gpu_util_%",
                          "std_gpu_util_%", "max_mem_alloc_MB"}) {
    EXPECT_TRUE(summary.number(key)) << key;
  }
}

TEST(StopVoteOnGpu, EveryRankHearsOfItOneStepLater) {
  StopVote agreement(*world);
  const bool is_alone = world->size() == 1;
  for (int step = 0; step < 5; ++step) {
    const int own = world->rank() == world->size() - 1 && step >= 2 ? SIGTERM : 0;
    EXPECT_EQ(agreement.after_step({.signal = own}).signal, step >= (is_alone ? 2 : 3) ? SIGTERM : 0) << step;
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
