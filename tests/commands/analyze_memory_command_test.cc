// `tessera analyze-memory` on logs by nvidia-smi and psrecord.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/json.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kLogs = std::string(TESSERA_TEST_DATA_FOLDER) + "/monitor/";

TEST(AnalyzeMemoryCommand, PrintsAJobAsTheWorkshopsDo) {
  const TestFolder folder;
  fs::create_directories(folder / "gpu_memory/4711");
  fs::create_directories(folder / "cpu_memory/4711");
  fs::copy_file(kLogs + "nvidia_smi.csv", folder / "gpu_memory/4711/gpu_memory_log.csv");
  fs::copy_file(kLogs + "psrecord.txt", folder / "cpu_memory/4711/cpu_memory_log.txt");
  const std::string path = folder.path().string(), title = "Analyzing logs for job ID: 4711 under " + path + "\n";
  const std::string gpu =
      "\nGPU Memory Usage\n[gpu_memory_log - GPU 0] Peak = 6967 MiB, Avg = 3078.92 MiB, Mode = 6967 MiB\n";
  const std::string cpu = "\nCPU Memory Usage\n   Peak =    67 MB\n   Average = 44.88 MB\n   Mode =    49, 67 MB\n";
  const auto analyze = [&](const std::string& more) {
    const Ended ended = run_tessera(fmt::format("analyze-memory 4711 --path {} {}", path, more));
    EXPECT_EQ(ended.status, 0) << ended.output;
    return ended.output;
  };
  EXPECT_EQ(analyze(""), title + gpu + cpu);
  EXPECT_EQ(analyze("--gpu-only"), title + gpu);
  EXPECT_EQ(analyze("--cpu-only"), title + cpu);
  const Json json = parse_json(analyze("--json"), "the output");
  EXPECT_EQ(json.at("job"), "4711");
  EXPECT_EQ(json.at("gpu")[0].at("peak_MiB"), 6967);
  EXPECT_EQ(json.at("cpu")[0].at("mode_MB"), Json::array({49.0, 67.0}));
  EXPECT_EQ(run_shell(fmt::format("cd {} && {} analyze-memory 4711", path, binary())).output,
            "Analyzing logs for job ID: 4711 under .\n" + gpu + cpu);
}

TEST(AnalyzeMemoryCommand, TakesFilesUnderAnyName) {
  const Ended ended = run_tessera(fmt::format("analyze-memory {0}psrecord_csv.txt {0}nvidia_smi_units.csv", kLogs));
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.output,
            "\nGPU Memory Usage\n[nvidia_smi_units - GPU 0] Peak = 6967 MiB, Avg = 3378.00 MiB, Mode = 6967 MiB\n"
            "\nCPU Memory Usage\n   Peak =    67 MB\n   Average = 43.40 MB\n   Mode =    49 MB\n");
}

TEST(AnalyzeMemoryCommand, SaysWhatIsMissing) {
  const TestFolder folder;
  const std::string path = folder.path().string();
  const Ended none = run_tessera("analyze-memory 7 --path " + path);
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.output, fmt::format("Analyzing logs for job ID: 7 under {0}\n"
                                     "[!] GPU log directory not found: {0}/gpu_memory/7\n"
                                     "[!] CPU log not found: {0}/cpu_memory/7/cpu_memory_log.txt\n",
                                     path));
  const auto expect_refused = [&](const std::string& arguments, const std::string& part) {
    const Ended ended = run_tessera("analyze-memory " + arguments);
    EXPECT_EQ(ended.status, 2) << arguments;
    EXPECT_TRUE(contains(ended.output, part)) << ended.output;
  };
  expect_refused("", "takes a job id, or the files");
  expect_refused("7 --gpu-only --cpu-only", "exclude each other");
  expect_refused(kLogs + "psrecord.txt no-such.csv", "no-such.csv: no such file");
  expect_refused(path, "neither a file nor a job id");
  expect_refused(kLogs + "psrecord.json", "neither a GPU memory log");
}

}  // namespace
}  // namespace tessera
