// `tessera runs` and `tessera table` as users start them, on tests/data/runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/file.h"
#include "core/json.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kRuns = std::string(TESSERA_TEST_DATA_FOLDER) + "/runs/";

// With the data's folder as the current one, so that names are short.
Ended in_runs(const std::string& arguments) {
  return run_shell(fmt::format("cd {} && {} {}", kRuns, binary(), arguments));
}

TEST(RunsCommand, LsListsRunsAndNamesABrokenOne) {
  const Ended ended = in_runs("runs ls other");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, " warn  skipped: other/broken/run.json:2:17: ")) << ended.output;
  EXPECT_FALSE(contains(ended.output, "rank 0")) << ended.output;  // it is none
  EXPECT_TRUE(contains(ended.output, "other/killed    gpt-qa    ddp             2  killed     10/100")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "1000 MiB allocated")) << ended.output;
  const Json list = parse_json(in_runs("runs ls other --json 2>/dev/null").output, "list");
  ASSERT_EQ(list.size(), 8u);
  EXPECT_EQ(list[0].at("run"), "other/format_1");
  const TestFolder empty;
  const Ended none = run_tessera("runs ls " + empty.path().string());
  EXPECT_EQ(none.status, 0);
  EXPECT_TRUE(contains(none.output, "no run.json below " + empty.path().string())) << none.output;
}

TEST(RunsCommand, ShowFitsOnAScreen) {
  const Ended ended = in_runs("runs show other/base/1");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "GPU memory allocated, peak          1000 MiB\n")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "  backward                           20.00 ms   64.5 %\n")) << ended.output;
  EXPECT_LT(std::count(ended.output.begin(), ended.output.end(), '\n'), 50);
  const Json json = parse_json(in_runs("runs show other/base/1 --json").output, "run");
  EXPECT_EQ(json.at("figures").at("samples_per_second"), 100.0);
  EXPECT_EQ(json.at("settings").at("seed").at("value"), "1");
}

TEST(RunsCommand, CompareIsAGate) {
  EXPECT_EQ(in_runs("runs compare other/base other/slow").status, 0);
  EXPECT_EQ(in_runs("runs compare other/base other/slow --max_slowdown 9%").status, 0);
  const Ended failed = in_runs("runs compare other/base other/slow --max_slowdown 5% --max_memory_growth 20%");
  EXPECT_EQ(failed.status, 48) << failed.output;
  EXPECT_TRUE(contains(failed.output, "gate failed\n  other/slow: 91.000 samples/s, 9.0 % slower than other/base"))
      << failed.output;
  const Ended json = in_runs("runs compare other/base other/slow --max_memory_growth 5% --json");
  EXPECT_EQ(json.status, 48);
  EXPECT_EQ(parse_json(json.output, "comparison").at("gate").at("passed"), false);
}

TEST(RunsCommand, CompareDoesNotPassARunThatCannotBeRead) {
  const TestFolder folder;
  fs::copy(kRuns + "other/slow", folder / "after", fs::copy_options::recursive);
  const std::string compare = fmt::format("runs compare other/base {} --max_slowdown 50%", (folder / "after").string());
  EXPECT_EQ(in_runs(compare).status, 0);
  const std::string record = read_file(folder / "after/2/run.json");
  write_file_atomically(folder / "after/2/run.json", record.substr(0, record.size() / 2));
  const Ended ended = in_runs(compare);
  EXPECT_EQ(ended.status, 48) << ended.output;
  EXPECT_TRUE(
      contains(ended.output, "gate failed\n  a run cannot be judged: " + (folder / "after/2/run.json").string()))
      << ended.output;
}

TEST(RunsCommand, RefusesWithTheReason) {
  const auto refusal = [](const std::string& arguments) {
    const Ended ended = in_runs(arguments);
    EXPECT_EQ(ended.status, 2) << ended.output;
    return ended.output;
  };
  EXPECT_TRUE(contains(refusal("runs"), "tessera runs ls [DIR...]"));
  EXPECT_TRUE(contains(refusal("runs show other"), "8 runs are below other"));
  EXPECT_TRUE(contains(refusal("runs ls none"), "none: no such file or folder"));
  EXPECT_TRUE(contains(refusal("runs compare other/base/1"), "only one run"));
  EXPECT_TRUE(contains(refusal("runs compare other/base other/slow --max_slowdown 0.05"), "such as 5%"));
  EXPECT_TRUE(contains(refusal("runs compare other/base other/slow --metric train_los"), "did you mean 'train_loss'?"));
  EXPECT_TRUE(contains(refusal("runs ls other --max_slowdown 5%"), "options of `tessera runs compare`"));
  EXPECT_TRUE(contains(refusal("table"), "tables: ddp/multi_gpu"));
  EXPECT_TRUE(contains(refusal("table ddp/multi_gpus --runs other"), "did you mean 'ddp/multi_gpu'?"));
  EXPECT_TRUE(contains(refusal("table ddp/multi_gpu"), "give --runs DIR"));
  EXPECT_TRUE(contains(refusal("table ddp/multi_gpu 2_gpus"), "expected ROW=DIR"));
  EXPECT_TRUE(contains(refusal("table ddp/multi_gpu 2_gpus=other"), "8 runs below other"));
  EXPECT_TRUE(contains(refusal("table ddp/multi_gpu 3_gpus=other/base/1"), "rows: "));
}

TEST(RunsCommand, ListsAThousandRuns) {
  const TestFolder folder;
  // A run of 1,000 steps logged every 10, with memory sampled every 5 s for ten minutes on 4 ranks.
  Json record = read_json_file(kRuns + "experiments/deepspeed/multi_gpu/4_gpus/run.json");
  for (int step = 10; step <= 1000; step += 10) {
    record["metrics"].push_back({{"step", step}, {"time", 1794733300.5}, {"loss", 5.25}, {"epoch", 0.5}});
  }
  for (Json& rank : record["ranks"]) {
    rank["series"] = {{"period_seconds", 5.0}, {"used_MB", std::vector<double>(120, 12345.5)}};
  }
  write_file_atomically(folder / "record", record.dump(1));
  for (int i = 0; i < 1000; ++i) {
    const fs::path run = folder / fmt::format("{}/run-{}", i % 10, i);
    fs::create_directories(run / "checkpoint-10");
    fs::copy_file(folder / "record", run / "run.json");
  }
  const Ended ended = run_tessera("runs ls " + folder.path().string());
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(std::count(ended.output.begin(), ended.output.end(), '\n'), 1001);
}

TEST(TableCommand, PrintsATableWithItsQuestions) {
  const Ended ended = in_runs("table fsdp/bloom/multi_gpu --runs experiments --format md");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "| 1 node x 2 GPUs | 2 | 10.000 | 1.60 | 250.00 | 1.60 | 4.1000 | 18.00 |\n"))
      << ended.output;
  EXPECT_TRUE(contains(ended.output, "\n- Is the loss alike across GPU counts?")) << ended.output;
  const Ended csv = in_runs("table fsdp/bloom/multi_gpu --runs experiments --format csv");
  EXPECT_TRUE(contains(csv.output, "\n1 node x 2 GPUs,2,10,1.6,250,1.6,4.1,18\n")) << csv.output;
}

TEST(TableCommand, TakesAUsersOwnFamily) {
  const TestFolder folder;
  fs::create_directories(folder / "more");
  write_file_atomically(folder / "more/mine.json", R"({"tessera_experiments": 1, "family": "mine", "job": "bloom-qa",
    "resources": {"nodes": 1, "gpus_per_node": 1}, "study": {"kind": "strong", "baseline": "one"},
    "experiments": {"one": {"settings": {}}, "two": {"resources": {"gpus_per_node": 2}, "repeats": 2}}})");
  const auto put = [&](const std::string& from, const std::string& experiment) {
    Json record = read_json_file(kRuns + from + "/run.json");
    record["facts"]["experiment"] = experiment;
    fs::create_directories(folder / "runs" / experiment);
    write_file_atomically(folder / "runs" / experiment / "run.json", record.dump(1));
  };
  put("program/baseline", "mine/one");
  put("program/2_gpus", "mine/two/repeat_1");
  put("program/2_gpus", "mine/two/repeat_2");
  const Ended ended = run_tessera(fmt::format("table mine --catalogue {} --runs {} --format md",
                                              (folder / "more").string(), (folder / "runs").string()));
  EXPECT_EQ(ended.status, 0) << ended.output;
  // (161.74 / 105.82) x (4.32 / 4.64) / 2
  EXPECT_TRUE(contains(ended.output, "| two | 1 node x 2 GPUs | 2 | 2.362 | 1.53 | 105.82 | 71.1 | 7.5956 | "))
      << ended.output;
  EXPECT_TRUE(contains(ended.output, "two: 2 repeats")) << ended.output;
}

TEST(TableCommand, WritesAPageOfItsOwn) {
  const TestFolder folder;
  const std::string file = (folder / "table.html").string();
  const Ended ended = in_runs(fmt::format("table ddp/multi_gpu --runs experiments --format html -o {}", file));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.output, "");
  const std::string html = read_file(file);
  EXPECT_TRUE(html.starts_with("<!doctype html>")) << html;
  EXPECT_TRUE(contains(html, "<td class=\"number\">1.90</td>")) << html;
}

TEST(TableCommand, TakesRunsByRow) {
  const Ended ended = in_runs("table fsdp/bloom/multi_gpu baseline=other/base/1 2_gpus=other/slow/1");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "90.000                 0.90")) << ended.output;  // 90 / 100 samples/s
  const Ended unnamed = in_runs("table fsdp/bloom/multi_gpu --runs other/base");
  EXPECT_TRUE(contains(unnamed.output,
                       "3 runs without an experiment's name: other/base/1, other/base/2, other/base/3. "
                       "Name a row's run as ROW=DIR: 8_gpus=other/base/1"))
      << unnamed.output;
}

}  // namespace
}  // namespace tessera
