#include "monitor/memory_logs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <ctime>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Written by psrecord 1.4 (tools/references/psrecord_log.py).
fs::path psrecord_file(const std::string& name) {
  return fs::path(TESSERA_TEST_DATA_FOLDER) / "monitor" / name;
}

TEST(CpuMemoryLog, OursHasTheBytesOfPsrecords) {
  const std::string real = read_file(psrecord_file("psrecord.txt"));
  std::string ours = std::string(kCpuMemoryLogHeader) + "\n";
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
  const std::string whole = std::string(kCpuMemoryLogHeader) + "\n" + row + row;
  for (std::size_t size = whole.size() - row.size(); size < whole.size(); ++size) {
    const CpuMemoryLog log = parse_cpu_memory_log(whole.substr(0, size), "log");
    EXPECT_EQ(log.samples.size(), 1u) << size;
    EXPECT_EQ(log.num_unreadable, 0) << size;
  }
}

TEST(CpuMemoryLog, SecondHeadersAndBrokenLinesDoNotHide) {
  const std::string row = cpu_memory_log_row({1, 100, 12.5, 34.5});
  const CpuMemoryLog log =
      parse_cpu_memory_log(std::string(kCpuMemoryLogHeader) + "\n" + row + "Process finished (1.00 seconds)\n 1 2 3\n" +
                               std::string(kCpuMemoryLogHeader) + "\n" + row,
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
  const std::string text = std::string(kCgroupMemoryLogHeader) + "\n" + cgroup_memory_log_row({0.5, 1234.5678});
  EXPECT_EQ(text, "# Elapsed time  Used (MB)  \n       0.500     1234.568\n");
  EXPECT_TRUE(is_cgroup_memory_log(text));
  EXPECT_FALSE(is_cpu_memory_log(text));
  const CgroupMemoryLog log = parse_cgroup_memory_log(text + "  1.0  12", "log");
  ASSERT_EQ(log.samples.size(), 1u);
  EXPECT_EQ(log.samples[0].used_MB, 1234.568);
}

TEST(CpuMemoryLog, NegativeMemoryIsNoSample) {
  const CpuMemoryLog log =
      parse_cpu_memory_log(std::string(kCpuMemoryLogHeader) + "\n" + cpu_memory_log_row({0, 1, 100, 200}) +
                               cpu_memory_log_row({1, 1, -100, 200}),
                           "log");
  EXPECT_EQ(log.samples.size(), 1u);
  EXPECT_EQ(log.num_unreadable, 1);
  const CgroupMemoryLog cgroup =
      parse_cgroup_memory_log(std::string(kCgroupMemoryLogHeader) + "\n" + cgroup_memory_log_row({0, -5}), "log");
  EXPECT_EQ(cgroup.num_unreadable, 1);
}

// Written by nvidia-smi 580.159.04 on a machine with one H200.
fs::path smi_file(const std::string& name) {
  return fs::path(TESSERA_TEST_DATA_FOLDER) / "monitor" / name;
}

// In a time zone of its own while it exists.
class InZone {
 public:
  explicit InZone(const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
  }
  ~InZone() {
    unsetenv("TZ");
    tzset();
  }
};

TEST(GpuMemoryLog, IsWrittenAsNvidiaSmiWritesIt) {
  const InZone zone("XYZ-3");  // three hours east of Greenwich
  const auto time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1738314000123));  // 09:00 UTC
  EXPECT_EQ(std::string(kGpuMemoryLogHeader) + "\n", "timestamp, index, name, memory.used [MiB], memory.total [MiB]\n");
  EXPECT_EQ(gpu_memory_log_row(time, {0, 0, "NVIDIA A100-SXM4-80GB", 26532, 81920}),
            "2025/01/31 12:00:00.123, 0, NVIDIA A100-SXM4-80GB, 26532, 81920\n");
  EXPECT_EQ(gpu_memory_log_row(time + std::chrono::milliseconds(877), {0, 3, "NVIDIA GB10", {}, {}}),
            "2025/01/31 12:00:01.000, 3, NVIDIA GB10, [N/A], [N/A]\n");
}

TEST(GpuMemoryLog, OursHasTheBytesOfARealOne) {
  const InZone zone("UTC");
  const std::string real = read_file(smi_file("nvidia_smi.csv"));
  std::string ours = std::string(kGpuMemoryLogHeader) + "\n";
  for (const GpuMemorySample& sample : parse_gpu_memory_log(real, "real").samples) {
    const auto since_1970 = std::chrono::milliseconds(std::llround(sample.seconds * 1000));
    ours += gpu_memory_log_row(std::chrono::system_clock::time_point(since_1970), sample);
  }
  EXPECT_EQ(ours, real);
}

TEST(GpuMemoryLog, RealOnesAreRead) {
  for (const char* name : {"nvidia_smi.csv", "nvidia_smi_units.csv", "nvidia_smi_noheader.csv"}) {
    const GpuMemoryLog log = read_gpu_memory_log(smi_file(name));
    ASSERT_GE(log.samples.size(), 12u) << name;
    EXPECT_EQ(log.num_unreadable, 0) << name;
    EXPECT_EQ(log.samples[0].used_MiB, 0) << name;
    EXPECT_EQ(log.samples[1].used_MiB, 629) << name;
    EXPECT_EQ(log.samples[11].used_MiB, 6967) << name;
    EXPECT_EQ(log.samples[11].total_MiB, 143771) << name;
    EXPECT_EQ(log.samples[11].name, "NVIDIA H200") << name;
    EXPECT_NEAR(log.samples[11].seconds - log.samples[0].seconds, 11, 0.01) << name;
  }
}

const std::string kHeaderLine = "timestamp, index, name, memory.used [MiB], memory.total [MiB]\n";

TEST(GpuMemoryLog, UnknownMemoryIsNoNumber) {
  const GpuMemoryLog log =
      parse_gpu_memory_log(kHeaderLine + "2025/01/31 12:00:00.123, 0, NVIDIA GB10, [N/A], [Not Supported]\n", "log");
  ASSERT_EQ(log.samples.size(), 1u);
  EXPECT_EQ(log.samples[0].used_MiB, std::nullopt);
  EXPECT_EQ(log.samples[0].total_MiB, std::nullopt);
}

// Whoever is killed while it writes leaves a part of a line, which may look whole: 26532 of 81920 cut to 819.
TEST(GpuMemoryLog, ACutOffLastLineIsLeftOut) {
  const std::string row = "2025/01/31 12:00:00.123, 0, NVIDIA A100-SXM4-80GB, 26532, 81920\n";
  const std::string whole = kHeaderLine + row + row;
  for (std::size_t size = kHeaderLine.size() + row.size(); size < whole.size(); ++size) {
    const GpuMemoryLog log = parse_gpu_memory_log(whole.substr(0, size), "log");
    EXPECT_EQ(log.samples.size(), 1u) << size;
    EXPECT_EQ(log.num_unreadable, 0) << size;
  }
}

TEST(GpuMemoryLog, LinesOfWindowsSecondHeadersAndOtherColumnsAreRead) {
  const GpuMemoryLog log = parse_gpu_memory_log(
      "timestamp, index, name, memory.used [MiB], memory.total [MiB]\r\n"
      "2025/01/31 12:00:00.123, 1, NVIDIA L4, 10, 20\r\n\r\n"
      "index, utilization.gpu [%], memory.used [MiB]\r\n"
      "2, 98 %, 30 MiB\r\n"
      "Unable to determine the device handle for GPU2: 0000:1B:00.0: GPU is lost.\r\n",
      "log");
  ASSERT_EQ(log.samples.size(), 2u);
  EXPECT_EQ(log.samples[0].total_MiB, 20);
  EXPECT_EQ(log.samples[1].index, 2);
  EXPECT_EQ(log.samples[1].used_MiB, 30);
  EXPECT_EQ(log.num_unreadable, 1);
}

TEST(GpuMemoryLog, AnotherFileIsRefusedInOneSentence) {
  for (const std::string text : {"# Elapsed time   CPU (%)\n", "a, b, c\n1, 2, 3\n", "no line end", "\x7f\x45LF\n"}) {
    EXPECT_FALSE(is_gpu_memory_log(text));
    try {
      parse_gpu_memory_log(text, "some.csv");
      FAIL() << text;
    } catch (const UsageError& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with("some.csv: not a GPU memory log: expected 'timestamp, index, ")) << message;
    }
  }
  EXPECT_TRUE(parse_gpu_memory_log("", "empty").samples.empty()) << "its writer was ended before the header";
}

}  // namespace

}  // namespace tessera
