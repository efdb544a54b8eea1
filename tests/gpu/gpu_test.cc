// One GPU: the CUDA flavour loads, NCCL runs, and CUDA tensors go through the collectives of one rank.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/collective_checks.h"
#include "comm/flight_recorder.h"
#include "comm/gpu_support.h"

namespace tessera {
namespace {

TEST(Gpu, IsFoundWithItsVersions) {
  const GpuSupport* gpu = gpu_support();
  ASSERT_NE(gpu, nullptr) << no_gpu_reason();
  EXPECT_GE(gpu->num_gpus(), 1);
  EXPECT_FALSE(gpu->info(0).name.empty());
  EXPECT_GT(gpu->info(0).memory_bytes, std::int64_t{1} << 30);
  EXPECT_FALSE(gpu->nccl_version().empty());
  EXPECT_FALSE(gpu->cuda_version().empty());
  EXPECT_TRUE(at::hasCUDA()) << "torch_cuda has not registered itself";
}

TEST(Gpu, NcclWorldOfOneRankDoesEverythingThatABackendMust) {
  WorldOptions options;
  options.banner = false;
  const auto world = World::create(options);
  EXPECT_EQ(world->backend_name(), "nccl");
  EXPECT_TRUE(world->device().is_cuda());
  check_layout(*world, 0);
  check_reductions(*world);
  check_same_bits_by_every_way(*world);
}

TEST(Gpu, NcclWorkIsRecordedToItsEnd) {
  WorldOptions options;
  options.banner = false;
  const auto world = World::create(options);
  world->all().all_reduce(at::zeros({1024}, at::device(world->device())), ReduceOp::SUM, "block.0")->wait();
  gpu_support()->synchronize();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the watchdog polls ten times per second
  const auto entries = world->recorder().entries();
  EXPECT_EQ(entries.back().unit, "block.0");
  EXPECT_TRUE(entries.back().done);
}

}  // namespace
}  // namespace tessera
