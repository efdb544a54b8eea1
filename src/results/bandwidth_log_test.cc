#include "results/bandwidth_log.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "results/page/page.h"
#include "support/small_run.h"

namespace tessera {
namespace {

constexpr const char* kCommTest =
    "Head: 127.0.0.1 port 38099; backend mpi\n"
    "# all_reduce: nRanks 2 minBytes 1024 maxBytes 65536 step: 4(factor) warmup iters: 5 iters: 20 validation: 1\n"
    "#        size         count      type   redop    root       time    algbw    busbw  #wrong       time    algbw    "
    "busbw  #wrong\n"
    "         1024           256     float     sum      -1      24.24     0.04     0.03       0      17.43     0.06    "
    " "
    "0.05       0\n"
    "        65536         16384     float     sum      -1      36.29     1.81     1.82       0      27.25     0.41    "
    " "
    "0.42       0\n"
    "# Avg bus bandwidth    : 0.655696\n";

TEST(BandwidthLog, HasTheFasterOfBothColumns) {
  const auto log = parse_bandwidth_log(kCommTest, "comm_test.log");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->name, "all_reduce, 2 ranks (comm_test.log)");
  ASSERT_EQ(log->rows.size(), 2u);
  EXPECT_EQ(log->rows[0].bytes, 1024);
  EXPECT_EQ(log->rows[0].bus_GBps, 0.05);
  EXPECT_EQ(log->rows[1].bus_GBps, 1.82);
}

// With one column pair (all-to-all in place is unknown), without checks (N/A), and a row that took no measurable time.
TEST(BandwidthLog, ReadsNcclTests) {
  const auto log = parse_bandwidth_log(
      "# Collective test starting: alltoall_perf\n"
      "           0             0     float    none      -1     0.12    0.00    0.00       0     0.11    0.00    0.00  "
      "  N/A\n"
      "     1048576         32768     float    none      -1    32.10   32.67   28.58     N/A    31.90   32.87   28.76  "
      "  N/A\n"
      "     2097152         65536     float    none      -1    40.00   52.43   45.87       0\n",
      "nccl_17.log");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->name, "alltoall_perf (nccl_17.log)");
  ASSERT_EQ(log->rows.size(), 2u);
  EXPECT_EQ(log->rows[0].bus_GBps, 28.76);
  EXPECT_EQ(log->rows[1].bus_GBps, 45.87);
  EXPECT_FALSE(parse_bandwidth_log("{'loss': 2.5}\n", "train.log"));
}

class BandwidthLogs : public WithFolder {};

TEST_F(BandwidthLogs, AreFoundWhereRunsAre) {
  for (const char* name : {"a/log/nccl_1.log", "b/comm_test.log", "b/train.log", "c/sweep.log"}) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, kCommTest);
  }
  EXPECT_EQ(find_bandwidth_logs({folder_.string()}).size(), 2u);
  EXPECT_EQ(find_bandwidth_logs({folder_.string(), (folder_ / "c/sweep.log").string()}).size(), 3u);

  PageInput input;
  input.runs.emplace_back().file = folder_ / "run.json";
  EXPECT_EQ(make_page(input).find("Bus bandwidth by message size"), std::string::npos);
  input.bandwidth_logs = find_bandwidth_logs({(folder_ / "b").string()});
  const std::string page = make_page(input);
  EXPECT_NE(page.find("Bus bandwidth by message size"), std::string::npos);
  EXPECT_NE(page.find("all_reduce, 2 ranks (comm_test.log)"), std::string::npos);
}

}  // namespace
}  // namespace tessera
