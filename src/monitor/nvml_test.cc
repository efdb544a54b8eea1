#include "monitor/nvml.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "monitor/process_usage.h"

namespace tessera {
namespace {

TEST(Nvml, ReadsTheGpuAtAnAddress) {
  const auto gpu = NvmlGpu::find("00000000:1b:00.0", TESSERA_FAKE_NVML);
  ASSERT_NE(gpu, nullptr);
  const GpuReading reading = gpu->read();
  EXPECT_EQ(reading.used_bytes, 1 << 18);  // without the 600 MiB that the driver reserves
  EXPECT_EQ(reading.total_bytes, std::int64_t{81920} << 20);
  EXPECT_EQ(reading.busy_percent, 42);
  EXPECT_EQ(NvmlGpu::find("00000000:1c:00.0", TESSERA_FAKE_NVML), nullptr);
}

TEST(Nvml, ListsAllGpus) {
  const std::vector<NvmlGpu> gpus = NvmlGpu::all(TESSERA_FAKE_NVML);
  ASSERT_EQ(gpus.size(), 4u);
  EXPECT_EQ(gpus[2].index(), 2);
  EXPECT_EQ(gpus[2].name(), "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(gpus[2].read().used_bytes, (200 << 20) + (1 << 18));
  EXPECT_EQ(gpus[3].read().used_bytes, std::nullopt);
  EXPECT_EQ(gpus[3].read().busy_percent, 45);
}

TEST(Nvml, AMachineWithoutItHasNoReadings) {
  EXPECT_EQ(NvmlGpu::find("00000000:1b:00.0", "libno-such-library.so.1"), nullptr);
  EXPECT_TRUE(NvmlGpu::all("libno-such-library.so.1").empty());
}

std::vector<int> indices_of_job(const std::string& slurm_job_gpus) {
  std::vector<int> indices;
  for (const NvmlGpu& gpu : gpus_of_job(NvmlGpu::all(TESSERA_FAKE_NVML), slurm_job_gpus)) {
    indices.push_back(gpu.index());
  }
  return indices;
}

TEST(Nvml, SlurmSaysWhichGpusBelongToTheJob) {
  const std::vector<int> all = {0, 1, 2, 3};
  EXPECT_EQ(indices_of_job(""), all);
  EXPECT_EQ(indices_of_job("2"), std::vector<int>{2});
  EXPECT_EQ(indices_of_job("0,2-3"), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(indices_of_job("4-7"), all) << "four of a larger node: Slurm hides the others and renumbers these";
  EXPECT_EQ(indices_of_job("GPU-1234"), all);
}

TEST(ProcessUsage, GrowsWithWhatIsAllocatedAndComputed) {
  const ProcessUsage before = read_process_usage();
  constexpr std::size_t kSize = std::size_t{64} << 20;
  // From the system: malloc may give what an earlier test has touched.
  void* const block = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 'x', kSize);
  volatile double sum = 0;
  for (std::size_t i = 0; i < kSize; ++i) sum = sum + static_cast<double>(static_cast<const char*>(block)[i]);
  const ProcessUsage after = read_process_usage();
  ::munmap(block, kSize);
  EXPECT_GT(before.resident_bytes, 0);
  EXPECT_GE(after.resident_bytes, before.resident_bytes + static_cast<std::int64_t>(kSize) * 9 / 10);
  EXPECT_GE(after.peak_resident_bytes, after.resident_bytes);
  EXPECT_GT(after.cpu_seconds, before.cpu_seconds);
}

}  // namespace
}  // namespace tessera
