#include "record/run_memory.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "monitor/memory_logs.h"
#include "record/record_file.h"

namespace tessera {
namespace {

RunRecord deepspeed_run(const std::string& name) {
  return read_run_record(std::string(TESSERA_TEST_DATA_FOLDER) + "/runs/experiments/deepspeed/" + name);
}

TEST(RunMemory, IsPeakAverageAndModesOfEachLog) {
  const RunMemory memory = read_run_memory(deepspeed_run("baseline"));
  ASSERT_EQ(memory.gpus.size(), 1u);
  EXPECT_EQ(memory.gpus[0].file.stem(), "gpu_memory_log");
  EXPECT_EQ(memory.gpus[0].used_MiB.peak, 26532);
  EXPECT_DOUBLE_EQ(memory.gpus[0].used_MiB.average, 19516);  // (1000 + 26532 + 26532 + 24000) / 4
  EXPECT_EQ(memory.gpus[0].used_MiB.modes, std::vector<double>{26532});
  ASSERT_EQ(memory.hosts.size(), 1u);
  EXPECT_EQ(memory.hosts[0].used_MB.peak, 3892);
  // (1000.4 + 2144.6 + 2145.3 + 3892.0 + 2177.2 + 2176.8) / 6 = 13536.3 / 6
  EXPECT_NEAR(memory.hosts[0].used_MB.average, 2256.05, 1e-9);
  EXPECT_EQ(memory.hosts[0].used_MB.modes, (std::vector<double>{2145, 2177}));  // of rounded values
  EXPECT_TRUE(memory.troubles.empty());
}

TEST(RunMemory, BeginsWithTheHeadNode) {
  RunRecord run = deepspeed_run("multi_node/2_nodes");
  EXPECT_EQ(read_run_memory(run).gpus.front().file.stem(), "gpu_memory_log_node1");
  run.hosts = {"node2", "node1"};
  EXPECT_EQ(read_run_memory(run).gpus.front().file.stem(), "gpu_memory_log_node2");
  EXPECT_EQ(read_run_memory(run).gpus.size(), 4u);
}

TEST(RunMemory, NamesLogsThatAreGone) {
  RunRecord run = deepspeed_run("baseline");
  run.gpu_logs = {"gpu_memory/8/none.csv"};
  run.cpu_logs.clear();
  const RunMemory memory = read_run_memory(run);
  EXPECT_TRUE(memory.gpus.empty());
  ASSERT_EQ(memory.troubles.size(), 1u);
  EXPECT_NE(memory.troubles[0].line.find("none.csv"), std::string::npos);
}

// A host of two GPUs, of which the job used the second.
TEST(RunMemory, TheFirstGpuIsOneThatTheJobUsed) {
  RunRecord run = deepspeed_run("baseline");
  const std::filesystem::path log = std::filesystem::path(testing::TempDir()) / "two_gpus.csv";
  std::string text = std::string(kGpuMemoryLogHeader) + "\n";
  for (const double used : {1000.0, 9000.0}) {
    text += gpu_memory_log_row({}, {0, 0, "H200", 4, 81920}) + gpu_memory_log_row({}, {0, 1, "H200", used, 81920});
  }
  write_file_atomically(log, text);
  run.gpu_logs = {log.string()};
  EXPECT_EQ(read_run_memory(run).first_gpu().index, 1);
  run.ranks = {{0, "node1", "H200", {{"used_peak_MB", 9100.0}}, {}, {}}};
  EXPECT_EQ(read_run_memory(run).first_gpu().index, 1);
  EXPECT_EQ(read_run_memory(run).gpus.size(), 2u);
}

}  // namespace
}  // namespace tessera
