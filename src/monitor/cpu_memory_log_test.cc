#include "monitor/cpu_memory_log.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Written by psrecord 1.4 (tools/references/psrecord_log.py).
fs::path psrecord_file(const std::string& name) {
  return fs::path(TESSERA_TEST_DATA_FOLDER) / "monitor" / name;
}

TEST(CpuMemoryLog, OursHasTheBytesOfPsrecords) {
  const std::string real = read_file(psrecord_file("psrecord.txt"));
  std::string ours = cpu_memory_log_header();
  for (const CpuMemorySample& sample : parse_cpu_memory_log(real, "real").samples) ours += cpu_memory_log_row(sample);
  EXPECT_EQ(ours, real);
}

TEST(CpuMemoryLog, LargeNumbersKeepTheirDigits) {
  EXPECT_EQ(cpu_memory_log_row({172800.5, 12800, 1048576.25, 123456789.125}),
            "  172800.500    12800.000  1048576.250 123456789.125\n");
}

TEST(CpuMemoryLog, EveryFormOfPsrecordIsRead) {
  for (const Json& log : read_json_file(psrecord_file("psrecord.json")).at("logs")) {
    const std::string name = log.at("file");
    const CpuMemoryLog read = read_cpu_memory_log(psrecord_file(name));
    ASSERT_EQ(read.samples.size(), log.at("samples").get<std::size_t>()) << name;
    EXPECT_EQ(read.num_unreadable, 0) << name;
    const CpuMemorySample& last = read.samples.back();
    const std::vector<double> found = {last.elapsed_seconds, last.cpu_percent, last.real_MB, last.virtual_MB};
    EXPECT_EQ(found, log.at("last").get<std::vector<double>>()) << name;
  }
}

TEST(CpuMemoryLog, ACutOffLastLineIsLeftOut) {
  const std::string row = cpu_memory_log_row({1, 100, 12.5, 34.5});
  const std::string whole = cpu_memory_log_header() + row + row;
  for (std::size_t size = cpu_memory_log_header().size() + row.size(); size < whole.size(); ++size) {
    const CpuMemoryLog log = parse_cpu_memory_log(whole.substr(0, size), "log");
    EXPECT_EQ(log.samples.size(), 1u) << size;
    EXPECT_EQ(log.num_unreadable, 0) << size;
  }
}

TEST(CpuMemoryLog, SecondHeadersAndBrokenLinesDoNotHide) {
  const std::string row = cpu_memory_log_row({1, 100, 12.5, 34.5});
  const CpuMemoryLog log = parse_cpu_memory_log(
      cpu_memory_log_header() + row + "Process finished (1.00 seconds)\n 1 2 3\n" + cpu_memory_log_header() + row,
      "log");
  EXPECT_EQ(log.samples.size(), 2u);
  EXPECT_EQ(log.num_unreadable, 2);
}

TEST(CpuMemoryLog, AnotherFileIsRefusedInOneSentence) {
  for (const std::string text : {"timestamp, index\n", "1 2 3 4\n", "no line end"}) {
    EXPECT_FALSE(is_cpu_memory_log(text));
    try {
      parse_cpu_memory_log(text, "some.txt");
      FAIL() << text;
    } catch (const UsageError& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with("some.txt: not a CPU memory log: expected '# Elapsed time   CPU (%)")) << message;
    }
  }
}

TEST(CgroupMemoryLog, HasTwoColumns) {
  const std::string text = cgroup_memory_log_header() + cgroup_memory_log_row({0.5, 1234.5678});
  EXPECT_EQ(text, "# Elapsed time  Used (MB)  \n       0.500     1234.568\n");
  EXPECT_TRUE(is_cgroup_memory_log(text));
  EXPECT_FALSE(is_cpu_memory_log(text));
  const CgroupMemoryLog log = parse_cgroup_memory_log(text + "  1.0  12", "log");
  ASSERT_EQ(log.samples.size(), 1u);
  EXPECT_EQ(log.samples[0].used_MB, 1234.568);
}

TEST(CpuMemoryLog, NegativeMemoryIsNoSample) {
  const CpuMemoryLog log = parse_cpu_memory_log(
      cpu_memory_log_header() + cpu_memory_log_row({0, 1, 100, 200}) + cpu_memory_log_row({1, 1, -100, 200}), "log");
  EXPECT_EQ(log.samples.size(), 1u);
  EXPECT_EQ(log.num_unreadable, 1);
  const CgroupMemoryLog cgroup =
      parse_cgroup_memory_log(cgroup_memory_log_header() + cgroup_memory_log_row({0, -5}), "log");
  EXPECT_EQ(cgroup.num_unreadable, 1);
}

}  // namespace
}  // namespace tessera
