#include "monitor/nvml.h"

#include <gtest/gtest.h>

#include "monitor/process_usage.h"

namespace tessera {
namespace {

TEST(Nvml, ReadsTheGpuAtAnAddress) {
  const auto gpu = NvmlGpu::find("00000000:1b:00.0", TESSERA_FAKE_NVML);
  ASSERT_NE(gpu, nullptr);
  const GpuReading reading = gpu->read();
  EXPECT_EQ(reading.used_bytes, 70);
  EXPECT_EQ(reading.busy_percent, 42);
  EXPECT_EQ(NvmlGpu::find("00000000:1c:00.0", TESSERA_FAKE_NVML), nullptr);
}

TEST(Nvml, AMachineWithoutItHasNoReadings) {
  EXPECT_EQ(NvmlGpu::find("00000000:1b:00.0", "libno-such-library.so.1"), nullptr);
}

TEST(ProcessUsage, GrowsWithWhatIsAllocatedAndComputed) {
  const ProcessUsage before = read_process_usage();
  constexpr std::size_t kSize = std::size_t{64} << 20;
  std::string block(kSize, 'x');
  volatile double sum = 0;
  for (std::size_t i = 0; i < kSize; ++i) sum = sum + static_cast<double>(block[i]);
  const ProcessUsage after = read_process_usage();
  EXPECT_GT(before.resident_bytes, 0);
  EXPECT_GE(after.resident_bytes, before.resident_bytes + static_cast<std::int64_t>(kSize) * 9 / 10);
  EXPECT_GE(after.peak_resident_bytes, after.resident_bytes);
  EXPECT_GT(after.cpu_seconds, before.cpu_seconds);
}

}  // namespace
}  // namespace tessera
