#include "monitor/memory_sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "monitor/memory_analysis.h"
#include "monitor/memory_logs.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class MemorySamplerLogs : public testing::Test {
 protected:
  MemorySamplerLogs() {
    options_ = sampler_options(Environment());
    options_.folder = folder_ / "logs";
    options_.job = "7";
    options_.period = milliseconds(20);
    options_.processes.roots = {getpid()};
    options_.nvml = TESSERA_FAKE_NVML;
    options_.warn = [this](const std::string& message) { warnings_.push_back(message); };
  }
  void sample_for(milliseconds time) {
    MemorySampler sampler(options_);
    sampler.start();
    std::this_thread::sleep_for(time);
    sampler.stop();
  }

  const TestFolder folder_;
  MemorySamplerOptions options_;
  std::vector<std::string> warnings_;
};

TEST_F(MemorySamplerLogs, ARunLeavesLogsThatBothReadersTake) {
  sample_for(milliseconds(110));
  const GpuMemoryLog gpu = read_gpu_memory_log(folder_ / "logs/gpu_memory/7/gpu_memory_log.csv");
  const CpuMemoryLog cpu = read_cpu_memory_log(folder_ / "logs/cpu_memory/7/cpu_memory_log.txt");
  EXPECT_EQ(gpu.samples.size() % 4, 0u);
  ASSERT_GE(gpu.samples.size(), 3u * 4);
  ASSERT_EQ(cpu.samples.size(), gpu.samples.size() / 4);
  EXPECT_EQ(gpu.samples[1].used_MiB, 101);  // 100.25, rounded up as nvidia-smi does
  EXPECT_EQ(gpu.samples[1].total_MiB, 81920);
  EXPECT_EQ(gpu.samples[3].used_MiB, std::nullopt);
  EXPECT_EQ(gpu.samples[1].seconds, gpu.samples[0].seconds);
  EXPECT_EQ(cpu.samples[0].cpu_percent, 0);
  EXPECT_LT(cpu.samples[0].elapsed_seconds, 0.1);
  EXPECT_GE(cpu.samples.back().elapsed_seconds, 0.11);
  EXPECT_GT(cpu.samples[0].real_MB, 1);
  EXPECT_GE(cpu.samples[0].virtual_MB, cpu.samples[0].real_MB);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(MemorySamplerLogs, SeveralNodesHaveTheirOwnFiles) {
  options_.host = "node1";
  sample_for(milliseconds(0));
  EXPECT_TRUE(fs::exists(folder_ / "logs/gpu_memory/7/gpu_memory_log_node1.csv"));
  const CpuMemoryLog cpu = read_cpu_memory_log(folder_ / "logs/cpu_memory/7/cpu_memory_log_node1.txt");
  EXPECT_EQ(cpu.samples.size(), 2u) << "the first and the last";
  EXPECT_EQ(find_memory_logs(options_.folder, "7").cpu.size(), 1u);
}

TEST_F(MemorySamplerLogs, AHostWithoutGpusAndCgroupsHasNoLogsOfThem) {
  options_.nvml = "libno-such-library.so.1";
  options_.root = folder_ / "root";
  fs::create_directories(options_.root / "proc/5");
  options_.processes.roots = {5};
  std::ofstream(options_.root / "proc/5/stat")
      << "5 (x) S 1 9 9 0 -1 0 5 6 7 8 0 0 0 0 20 0 3 0 1 8388608 512 1 1 2 3\n";
  MemorySampler sampler(options_);
  sampler.start();
  sampler.stop();
  EXPECT_FALSE(fs::exists(folder_ / "logs/gpu_memory"));
  EXPECT_FALSE(sampler.has_gpus());
  const MemoryLogs logs = find_memory_logs(options_.folder, options_.job);
  EXPECT_TRUE(logs.gpu.empty());
  EXPECT_TRUE(logs.cgroup.empty());
  EXPECT_TRUE(find_memory_logs(options_.folder, "7").cgroup.empty());
  EXPECT_EQ(read_cpu_memory_log(logs.cpu.front()).samples.front().virtual_MB, 8);
}

TEST_F(MemorySamplerLogs, CgroupMemoryIsInALogOfItsOwn) {
  options_.root = folder_ / "root";
  fs::create_directories(options_.root / "proc/self");
  fs::create_directories(options_.root / "sys/fs/cgroup");
  std::ofstream(options_.root / "proc/self/cgroup") << "0::/\n";
  std::ofstream(options_.root / "sys/fs/cgroup/memory.current") << "4194304\n";
  std::ofstream(options_.root / "sys/fs/cgroup/memory.stat") << "inactive_file 1048576\nactive_file 524288\n";
  sample_for(milliseconds(0));
  const CgroupMemoryLog log = read_cgroup_memory_log(folder_ / "logs/cpu_memory/7/cgroup_memory_log.txt");
  ASSERT_EQ(log.samples.size(), 2u);
  EXPECT_EQ(log.samples[0].used_MB, 2.5);
  // No process, no row: a row of zeros would lower the average.
  EXPECT_TRUE(read_cpu_memory_log(folder_ / "logs/cpu_memory/7/cpu_memory_log.txt").samples.empty());
}

TEST_F(MemorySamplerLogs, AFullDiskGivesOneWarning) {
  fs::create_directories(folder_ / "logs/cpu_memory/7");
  fs::create_symlink("/dev/full", folder_ / "logs/cpu_memory/7/cpu_memory_log.txt");
  sample_for(milliseconds(100));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("cpu_memory_log.txt: No space left on device; the memory logs have gaps"),
            std::string::npos)
      << warnings_[0];
  EXPECT_GE(read_gpu_memory_log(folder_ / "logs/gpu_memory/7/gpu_memory_log.csv").samples.size(), 8u);
}

TEST_F(MemorySamplerLogs, AFolderThatCannotBeMadeIsRefused) {
  std::ofstream(folder_ / "logs") << "a file";
  EXPECT_THROW(MemorySampler sampler(options_), Error);
}

TEST_F(MemorySamplerLogs, ItKnowsWhatItCosts) {
  MemorySampler sampler(options_);
  sampler.start();
  std::this_thread::sleep_for(milliseconds(100));
  sampler.stop();
  EXPECT_GT(sampler.cpu_seconds(), 0);
  EXPECT_LT(sampler.cpu_seconds(), sampler.seconds());
  EXPECT_GE(sampler.seconds(), 0.1);
}

std::set<std::string> threads_of_this_process() {
  std::set<std::string> threads;
  for (const auto& entry : fs::directory_iterator("/proc/self/task")) threads.insert(entry.path().string());
  return threads;
}

// A signal meant for the program must not reach the sampler's thread, where it would end the process.
TEST_F(MemorySamplerLogs, ItTakesNoSignals) {
  const std::set<std::string> before = threads_of_this_process();
  MemorySampler sampler(options_);
  sampler.start();
  int num_new = 0;
  for (const std::string& thread : threads_of_this_process()) {
    if (before.contains(thread)) continue;
    ++num_new;
    const std::string status = read_file(thread + "/status");
    const std::size_t at = status.find("SigBlk:\t");
    ASSERT_NE(at, std::string::npos);
    const std::uint64_t blocked = std::stoull(status.substr(at + 8, 16), nullptr, 16);
    for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) EXPECT_TRUE(blocked & (1ULL << (signal - 1))) << signal;
  }
  EXPECT_GE(num_new, 1);
}

TEST(SamplerOptions, TakeTheGpusOfTheirOwnNode) {
  EXPECT_EQ(sampler_options(Environment({{"SLURM_JOB_GPUS", "0,1"}, {"SLURM_STEP_GPUS", "0"}})).slurm_job_gpus, "0,1");
  const Environment second({{"SLURM_JOB_GPUS", "0,1"}, {"SLURM_STEP_GPUS", "2,3"}, {"SLURM_NODEID", "1"}});
  EXPECT_EQ(sampler_options(second).slurm_job_gpus, "2,3");
}

}  // namespace
}  // namespace tessera
