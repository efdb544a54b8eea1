// `tessera train --monitor`: alone, under `tessera launch` and under mpirun.
#include <algorithm>
#include <filesystem>

#include "commands/train_command.h"
#include "core/file.h"
#include "monitor/memory_logs.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class MonitoredTrainCommand : public TrainCommandTest {
 protected:
  // The job of the only logs below an output folder.
  std::string only_job(const std::string& name) const {
    std::vector<std::string> jobs;
    for (const auto& entry : fs::directory_iterator(folder_ / name / "cpu_memory")) {
      jobs.push_back(entry.path().filename().string());
    }
    EXPECT_EQ(jobs.size(), 1u);
    return jobs.empty() ? "" : jobs.front();
  }
  // By the only log of the only job, which every process of the run is in.
  double peak_MB(const std::string& name) const {
    const MemoryLogs logs = find_memory_logs(folder_ / name, only_job(name));
    EXPECT_EQ(logs.cpu.size(), 1u);
    double peak = 0;
    for (const CpuMemorySample& sample : read_cpu_memory_log(logs.cpu.at(0)).samples) {
      peak = std::max(peak, sample.real_MB);
    }
    return peak;
  }
};

constexpr const char* kMonitored = "--monitor --monitor_period 100ms";

TEST_F(MonitoredTrainCommand, ALoneRunWritesAndPrintsItsMemory) {
  const Ended ended = gpt("out", kMonitored);
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_GT(peak_MB("out"), 50);
  EXPECT_EQ(count_of(ended.output, "Analyzing logs for job ID: " + only_job("out") + " under " + out("out")), 1)
      << ended.output;
  EXPECT_EQ(count_of(ended.output, "CPU Memory Usage"), 1) << ended.output;
}

TEST_F(MonitoredTrainCommand, WithoutTheSettingThereAreNoLogs) {
  EXPECT_EQ(gpt("out", "").status, 0);
  EXPECT_FALSE(fs::exists(folder_ / "out/cpu_memory"));
  EXPECT_EQ(gpt("dry", "--monitor --dry_run").status, 0);
  EXPECT_FALSE(fs::exists(folder_ / "dry/cpu_memory"));
}

TEST_F(MonitoredTrainCommand, TheLauncherSamplesForItsRanks) {
  const double alone = gpt("alone", kMonitored).status == 0 ? peak_MB("alone") : 0;
  const Ended ended = run_tessera("launch --nproc_per_node 2 " + gpt_words("out", kMonitored));
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_GT(peak_MB("out"), 1.5 * alone) << "two ranks, the launcher and mpirun";
  EXPECT_EQ(count_of(ended.output, "CPU Memory Usage"), 1) << ended.output;
  const Ended refused = run_tessera("launch --nproc_per_node 2 " + gpt_words("bad", "--monitor --no_such_setting 1"));
  EXPECT_EQ(refused.status, 2) << refused.output;
  EXPECT_FALSE(fs::exists(folder_ / "bad"));
}

TEST_F(MonitoredTrainCommand, UnderMpirunOneRankSamplesForAll) {
  const double alone = gpt("alone", kMonitored).status == 0 ? peak_MB("alone") : 0;
  const Ended ended = gpt("out", kMonitored, 2);
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_GT(peak_MB("out"), 1.5 * alone);
  EXPECT_EQ(count_of(ended.output, "CPU Memory Usage"), 1) << ended.output;
}

}  // namespace
}  // namespace tessera
