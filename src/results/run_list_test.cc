#include <gtest/gtest.h>

#include "record/find_runs.h"
#include "record/metrics.h"
#include "record/run_record.h"
#include "results/run_summary.h"

namespace tessera {
namespace {

const std::string kListedRuns = std::string(TESSERA_TEST_DATA_FOLDER) + "/runs/";

TEST(RunList, ShowsNewestLastWithUnits) {
  const FoundRuns found = find_runs({kListedRuns + "other"}, RunDetail::kBrief);
  const double now = *seconds_of_utc("2026-11-16T00:00:00Z");
  const Table table = run_list(found.runs, now);
  std::vector<std::string> line;
  for (const TableCell& cell : table.rows.front()) line.push_back(cell.text);
  line[0] = line[0].substr(kListedRuns.size());
  EXPECT_EQ(line, (std::vector<std::string>{"other/format_1", "bloom-qa", "full_shard", "2", "finished", "31/31",
                                            "1.50", "512 MiB process", "3.2500", "2025-01-31T12:00:00Z"}));
  const Json last = run_list_json(found.runs, now).back();
  EXPECT_EQ(last.at("strategy"), "zero3");
  EXPECT_EQ(last.at("samples_per_second"), 92.0);
  EXPECT_EQ(last.at("allocated_peak_MB"), 1100.0);
  const Json killed = run_list_json(found.runs, now)[5];
  EXPECT_EQ(killed.at("status"), "killed");
  EXPECT_EQ(killed.at("steps"), 10);
  EXPECT_EQ(killed.at("samples_per_second"), 50.0);
  EXPECT_EQ(killed.at("train_loss"), 6.5);
}

TEST(RunList, HasTheSamePeakOfMemoryAsTheFigures) {
  RunRecord run;
  run.summary = {{"max_cpu_mem_MB", 176.0}};  // seen at the ends of steps
  run.ranks.resize(2);
  run.ranks[0].numbers = {{"resident_peak_MB", 185.0}};
  run.ranks[1].numbers = {{"resident_peak_MB", 180.0}};
  EXPECT_EQ(resident_peak_MB(run), 185.0);
  EXPECT_EQ(run_list({run}, 0).rows[0][7].text, "185 MiB process");
  EXPECT_EQ(run_list_json({run}, 0)[0].at("resident_peak_MB"), 185.0);
}

TEST(RunList, HasTheStepThatARunReached) {
  RunRecord run;
  run.total_steps = 720;
  run.metrics = {{{"step", std::int64_t{100}}}};
  EXPECT_EQ(steps_done(run), 100) << "of records before steps_done";
  run.steps_done = 134;  // stopped between two log lines
  EXPECT_EQ(run_list({run}, 0).rows[0][5].text, "134/720");
  EXPECT_EQ(run_list_json({run}, 0)[0].at("steps"), 134);
}

}  // namespace
}  // namespace tessera
