// Step times on a GPU are the device's: what is queued counts where it runs, not where the host queues it.
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/host.h"
#include "parallel/step_clock.h"

namespace tessera {
namespace {

const c10::Device kGpu(c10::kCUDA, 0);

void synchronize() {
  const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
  guard.synchronizeStream(guard.getStream(kGpu));
}

double ms_of(const StepTimes& times, StepPart part) {
  return 1000 * times.mean[static_cast<std::size_t>(part)];
}

TEST(StepClockOnGpu, CountsWorkWhereItRuns) {
  const at::Tensor matrix = at::randn({4096, 4096}, at::device(kGpu).dtype(at::kFloat)) / 64;
  at::Tensor product = at::matmul(matrix, matrix);
  synchronize();
  StepClock clock(kGpu);
  clock.begin();
  double begin = 0;
  for (int step = 0; step < 4; ++step) {
    if (step == 1) {  // the first is left out
      synchronize();
      begin = steady_seconds();
    }
    {
      const auto timed = clock.enter(StepPart::kForward);
      for (int i = 0; i < 20; ++i) product = at::matmul(product, matrix);
    }
    {
      // Hidden: the device still multiplies.
      const auto timed = clock.enter(StepPart::kUpdate);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    synchronize();
    {
      const auto timed = clock.enter(StepPart::kData);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    clock.end_step();
  }
  synchronize();
  const double wall_ms = 1000 * (steady_seconds() - begin) / 3;
  const StepTimes times = clock.times();
  EXPECT_EQ(times.num_steps, 3);
  EXPECT_GE(ms_of(times, StepPart::kData), 19.9);
  EXPECT_LT(ms_of(times, StepPart::kData), 25);
  EXPECT_GT(ms_of(times, StepPart::kForward), 10);  // 20 products of 137 GFLOP in float32
  EXPECT_LT(ms_of(times, StepPart::kUpdate), 0.5);
  EXPECT_NEAR(1000 * times.step_mean, wall_ms, 0.02 * wall_ms);
}

}  // namespace
}  // namespace tessera
