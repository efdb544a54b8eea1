#include "monitor/memory_analysis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "monitor/memory_logs.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class MemoryAnalysisText : public testing::Test {
 protected:
  fs::path put(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  const TestFolder folder_;
};

std::string gpu_rows(int index, std::initializer_list<double> used_MiB) {
  std::string text;
  for (const double used : used_MiB) text += gpu_memory_log_row({}, {0, index, "NVIDIA A100-SXM4-80GB", used, 81920});
  return text;
}

std::string cpu_rows(std::initializer_list<double> real_MB) {
  std::string text = std::string(kCpuMemoryLogHeader) + "\n";
  for (const double real : real_MB) text += cpu_memory_log_row({0, 0, real, 0});
  return text;
}

TEST(MemoryStatistics, CountRoundedValues) {
  const MemoryStatistics statistics = memory_statistics({10.4, 12, 9.6, 12.3, 3});
  EXPECT_EQ(statistics.num_samples, 5u);
  EXPECT_EQ(statistics.peak, 12.3);
  EXPECT_DOUBLE_EQ(statistics.average, 9.46);
  EXPECT_EQ(statistics.modes, (std::vector<double>{10, 12}));
  EXPECT_EQ(modes_text(statistics), "10, 12");
  EXPECT_EQ(memory_statistics({}).num_samples, 0u);
}

// By hand: (8 x 26532 + 3 x 11596 + 11629) / 12 and (500 + 2144.9 + 2145.2 + 2177.4 + 2176.6 + 3892.3) / 6.
TEST_F(MemoryAnalysisText, AJobIsPrintedAsTheWorkshopsPrintIt) {
  const double high = 26532, low = 11596;
  put("gpu_memory/7/gpu_memory_log.csv",
      std::string(kGpuMemoryLogHeader) + "\n" +
          gpu_rows(0, {low, low, low, 11629, high, high, high, high, high, high, high, high}));
  put("cpu_memory/7/cpu_memory_log.txt", cpu_rows({500, 2144.9, 2145.2, 2177.4, 2176.6, 3892.3}));
  EXPECT_EQ(memory_text(analyze_memory_of_job(folder_.path(), "7")),
            "\nGPU Memory Usage\n"
            "[gpu_memory_log - GPU 0] Peak = 26532 MiB, Avg = 21556.08 MiB, Mode = 26532 MiB\n"
            "\nCPU Memory Usage\n"
            "   Peak =    3892 MB\n"
            "   Average = 2172.73 MB\n"
            "   Mode =    2145, 2177 MB\n");
}

TEST_F(MemoryAnalysisText, SeveralHostsAndGpusAreInOrder) {
  put("gpu_memory/7/gpu_memory_log_b.csv",
      std::string(kGpuMemoryLogHeader) + "\n" + gpu_rows(1, {2, 4}) + gpu_rows(0, {1}));
  put("gpu_memory/7/gpu_memory_log_a.csv",
      std::string(kGpuMemoryLogHeader) + "\n" + gpu_rows(10, {7}) + gpu_rows(9, {8}));
  put("cpu_memory/7/cpu_memory_log_b.txt", cpu_rows({1}));
  put("cpu_memory/7/cpu_memory_log_a.txt", cpu_rows({2}));
  put("cpu_memory/7/cgroup_memory_log_a.txt",
      std::string(kCgroupMemoryLogHeader) + "\n" + cgroup_memory_log_row({0, 3}));
  EXPECT_EQ(memory_text(analyze_memory_of_job(folder_.path(), "7")),
            "\nGPU Memory Usage\n"
            "[gpu_memory_log_a - GPU 9] Peak = 8 MiB, Avg = 8.00 MiB, Mode = 8 MiB\n"
            "[gpu_memory_log_a - GPU 10] Peak = 7 MiB, Avg = 7.00 MiB, Mode = 7 MiB\n"
            "[gpu_memory_log_b - GPU 0] Peak = 1 MiB, Avg = 1.00 MiB, Mode = 1 MiB\n"
            "[gpu_memory_log_b - GPU 1] Peak = 4 MiB, Avg = 3.00 MiB, Mode = 2, 4 MiB\n"
            "\nCPU Memory Usage\n"
            "   [cpu_memory_log_a]\n   Peak =    2 MB\n   Average = 2.00 MB\n   Mode =    2 MB\n"
            "   [cpu_memory_log_b]\n   Peak =    1 MB\n   Average = 1.00 MB\n   Mode =    1 MB\n"
            "\nCgroup Memory Usage (without page cache)\n"
            "   Peak =    3 MB\n   Average = 3.00 MB\n   Mode =    3 MB\n");
}

TEST_F(MemoryAnalysisText, MissingLogsAreNamed) {
  const std::string folder = folder_.path().string();
  EXPECT_EQ(memory_text(analyze_memory_of_job(folder_.path(), "7")),
            "[!] GPU log directory not found: " + folder + "/gpu_memory/7\n" + "[!] CPU log not found: " + folder +
                "/cpu_memory/7/cpu_memory_log.txt\n");
  EXPECT_TRUE(analyze_memory_of_job(folder_.path(), "7").is_empty());
  fs::create_directories(folder_ / "gpu_memory/7");
  EXPECT_EQ(memory_text(analyze_memory_of_job(folder_.path(), "7", MemoryKinds::kGpu)),
            "[!] No GPU logs found in " + folder + "/gpu_memory/7\n");
  put("cpu_memory/7/cpu_memory_log.txt", cpu_rows({1}));
  const MemoryAnalysis cpu = analyze_memory_of_job(folder_.path(), "7", MemoryKinds::kCpu);
  for (const MemoryTrouble& trouble : cpu.troubles) EXPECT_EQ(trouble.of, MemoryTrouble::Of::kCpu) << trouble.line;
  EXPECT_EQ(cpu.hosts.size(), 1u);
}

TEST_F(MemoryAnalysisText, ABrokenFileDoesNotHideTheOthers) {
  put("gpu_memory/7/a.csv", "not a log\n");
  put("gpu_memory/7/b.csv", std::string(kGpuMemoryLogHeader) + "\n" + gpu_rows(0, {5}) + "half a line\n");
  const std::string text = memory_text(analyze_memory_of_job(folder_.path(), "7", MemoryKinds::kGpu));
  EXPECT_TRUE(text.starts_with("\nGPU Memory Usage\n[b - GPU 0] Peak = 5 MiB")) << text;
  EXPECT_NE(text.find("\n[!] Failed to read " + (folder_ / "gpu_memory/7/a.csv").string() + ": not a GPU"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("b.csv: 1 line could not be read and is left out\n"), std::string::npos) << text;
}

// tools/references/psrecord_log.py computed these by the workshops' rules.
TEST(MemoryAnalysis, ReadsPsrecordsFilesAsTheWorkshopsDo) {
  const fs::path folder = fs::path(TESSERA_TEST_DATA_FOLDER) / "monitor";
  for (const Json& log : read_json_file(folder / "psrecord.json").at("logs")) {
    const fs::path file = folder / log.at("file").get<std::string>();
    EXPECT_EQ(memory_text(analyze_memory_logs({{}, {file}, {}})),
              fmt::format("\nCPU Memory Usage\n   Peak =    {} MB\n   Average = {} MB\n   Mode =    {} MB\n",
                          log.at("peak").get<std::string>(), log.at("average").get<std::string>(),
                          log.at("mode").get<std::string>()));
  }
}

// By hand: 0, 2 x 629, 2 x 963, 3 x 1965 and 4 x 6967 are 36947, over 12.
TEST(MemoryAnalysis, ReadsNvidiaSmisFile) {
  const fs::path file = fs::path(TESSERA_TEST_DATA_FOLDER) / "monitor/nvidia_smi.csv";
  const MemoryAnalysis analysis = analyze_memory_logs({{file}, {}, {}});
  EXPECT_EQ(memory_text(analysis),
            "\nGPU Memory Usage\n"
            "[nvidia_smi - GPU 0] Peak = 6967 MiB, Avg = 3078.92 MiB, Mode = 6967 MiB\n");
  const Json json = memory_json(analysis);
  EXPECT_EQ(json.at("gpu")[0].at("name"), "NVIDIA H200");
  EXPECT_EQ(json.at("gpu")[0].at("total_MiB"), 143771);
  EXPECT_EQ(json.at("gpu")[0].at("mode_MiB"), Json::array({6967}));
  EXPECT_EQ(json.at("gpu")[0].at("samples"), 12);
}

TEST_F(MemoryAnalysisText, JobsWithoutANumberAreNamedByTheTime) {
  EXPECT_EQ(new_memory_job(folder_.path(), Environment({{"SLURM_JOB_ID", "4711"}})), "4711");
  const std::string first = new_memory_job(folder_.path(), Environment());
  EXPECT_EQ(first.size(), std::string("20250131-120000").size());
  fs::create_directories(folder_ / "cpu_memory" / first);
  EXPECT_NE(new_memory_job(folder_.path(), Environment()), first);
  EXPECT_EQ(job_as_folder_name("a/b"), "a_b");
  EXPECT_EQ(job_as_folder_name(".."), "_");
}

TEST(MemoryLogs, JobsMayHaveAnyName) {
  EXPECT_EQ(job_as_folder_name("a/b\nc"), "a_b_c");
  EXPECT_EQ(job_as_folder_name(".."), "_");
}

}  // namespace
}  // namespace tessera
