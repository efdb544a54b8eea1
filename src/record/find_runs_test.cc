#include "record/find_runs.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/file.h"
#include "record/metrics.h"
#include "record/run_record.h"
#include "support/small_run.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kRecordedRuns = std::string(TESSERA_TEST_DATA_FOLDER) + "/runs/";

class FindRuns : public WithFolder {
 protected:
  void add_run(const std::string& name) {
    fs::create_directories(folder_ / name);
    fs::copy_file(kRecordedRuns + "other/failed/run.json", folder_ / name / "run.json");
  }
  std::vector<std::string> found(const std::vector<std::string>& places) const {
    std::vector<std::string> names;
    for (const fs::path& file : find_run_files(places)) names.push_back(fs::relative(file.parent_path(), folder_));
    return names;
  }
};

TEST_F(FindRuns, AnywhereBelowButNotInWhatARunWrote) {
  for (const char* name : {"b", "a/deep/er", "runs/x", "a/deep/er/checkpoint-10", "b/runs/y", "b/wandb/z", "b/second",
                           ".trash/c", "b/log/d"}) {
    add_run(name);
  }
  EXPECT_EQ(found({folder_.string()}), (std::vector<std::string>{"a/deep/er", "b", "b/second", "runs/x"}));
  EXPECT_EQ(found({(folder_ / "b/run.json").string()}), std::vector<std::string>{"b"});
}

TEST_F(FindRuns, OnceThoughLinksLeadBack) {
  add_run("a");
  fs::create_directory_symlink(folder_, folder_ / "a/up");
  fs::create_directory_symlink(folder_ / "a", folder_ / "again");
  EXPECT_EQ(found({folder_.string(), (folder_ / "a").string()}), std::vector<std::string>{"a"});
}

TEST_F(FindRuns, APlaceThatIsMissingIsNamed) {
  EXPECT_THROW(find_run_files({(folder_ / "none").string()}), UsageError);
  EXPECT_TRUE(find_run_files({folder_.string()}).empty());
}

TEST_F(FindRuns, ABrokenRecordIsNamedAndSkipped) {
  for (const RunDetail detail : {RunDetail::kBrief, RunDetail::kWhole}) {
    const FoundRuns runs = find_runs({kRecordedRuns + "other"}, detail);
    EXPECT_EQ(runs.runs.size(), 8u);
    ASSERT_EQ(runs.problems.size(), 1u);
    EXPECT_EQ(runs.problems[0].substr(kRecordedRuns.size()), "other/broken/run.json:2:17: expected a value, found ','");
  }
}

TEST_F(FindRuns, OfFormat1HaveWhatTheirSettingsSay) {
  const RunRecord run = read_run_record(kRecordedRuns + "other/format_1");
  EXPECT_EQ(job_text(run), "bloom-qa");
  EXPECT_EQ(strategy_text(run), "full_shard");
  EXPECT_EQ(precision_text(run), "bf16");
  EXPECT_EQ(num_ranks(run), 2);
  EXPECT_EQ(num_nodes(run), 1);
  EXPECT_EQ(samples_per_second(run), 1.5);
  EXPECT_FALSE(allocated_peak_MB(run).has_value());
}

TEST(RunStatus, ARunThatWentSilentWasKilled) {
  RunRecord run;
  run.status = "running";
  run.updated = "2026-11-15T09:00:00Z";
  const double updated = *seconds_of_utc(run.updated);
  EXPECT_EQ(updated, 1794733200);  // date -u -d 2026-11-15T09:00:00Z +%s
  EXPECT_EQ(status_of(run, updated + 600), "running");
  EXPECT_EQ(status_of(run, updated + 601), "killed");
  EXPECT_EQ(status_with_reason(run, updated + 601), "killed: no word since 2026-11-15T09:00:00Z");
  EXPECT_EQ(status_of(run, updated - 3600), "running");  // another host's clock
  run.status = "failed";
  run.exit_reason = "no space left";
  EXPECT_EQ(status_with_reason(run, updated + 10000), "failed: no space left");
}

TEST(RunStatus, TimesThatAreNone) {
  for (const char* text : {"", "2026-11-15", "yesterday", "2026-11-15T09:00:00+01:00"}) {
    EXPECT_FALSE(seconds_of_utc(text).has_value()) << text;
  }
}

TEST(RunRecords, AValueOfAnotherKindIsRefusedInOurWords) {
  Json record = read_json_file(kRecordedRuns + "other/base/1/run.json");
  record["ranks"] = {{{"rank", "zero"}}};
  const fs::path file = fs::path(testing::TempDir()) / "unexpected.json";
  write_file_atomically(file, record.dump());
  try {
    read_run_record(file, RunDetail::kBrief);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()), file.string() + ": \"rank\" has an unexpected type");
  }
}

}  // namespace
}  // namespace tessera
