#include "listeners/run_recorder.h"

#include <cmath>

#include "core/file.h"
#include "record/record_file.h"
#include "support/small_run.h"

namespace tessera {
namespace {

RunRecord description() {
  RunRecord run;
  run.settings = {{"learning_rate", "5e-05", "command line"},
                  {"hub_token", "hf_abcdefgh", "environment"},
                  {"tokenizer_name", "bloom", "default"},
                  {"note", "key is local-12345678", "command line"}};
  run.versions = {{"tessera", "0.1.0"}};
  run.hosts = {"node1", "node2"};
  run.devices = {"H200"};
  run.command = {"tessera", "train", "--api=local-12345678"};
  run.commit = "abc123";
  return run;
}

std::vector<std::string> secrets() {
  return secret_values_of({{"WANDB_API_KEY", "local-12345678"}, {"HOME", "/home/user"}});
}

using RecordedRun = WithFolder;

TEST_F(RecordedRun, HoldsWhatTheRunWasAndDid) {
  const auto file = folder_ / "run.json";
  Listeners listeners;
  listeners.add(std::make_unique<RunRecorder>(file, description(), secrets()));
  listeners.on_train_begin({0, 93, 0, 1700000000});
  EXPECT_EQ(read_json_file(file).at("status"), "running");
  listeners.on_log({10, 93, 0.32, 1700000010}, {{"loss", 1.5}, {"grad_norm", NAN}, {"epoch", 0.32}});
  listeners.on_metrics({10, 93, 0.32, 1700000010}, {{"train/samples_per_second", 12.0}});
  listeners.on_save({31, 93, 1.0, 1700000020}, {"out/checkpoint-31", {"out/checkpoint-31"}});
  listeners.on_save({62, 93, 2.0, 1700000030}, {"out/checkpoint-62", {"out/checkpoint-62"}});  // the limit is 1
  listeners.on_summary({93, 93, 2.928, 1700000099}, {{"train_loss", 1.25}});
  listeners.on_train_end({93, 93, 2.928, 1700000100}, RunEnd::kStoppedEarly, "no gain for 3 evaluations");

  const Json run = read_json_file(file);
  EXPECT_EQ(run.at("status"), "stopped_early");
  EXPECT_EQ(run.at("exit_reason"), "no gain for 3 evaluations");
  EXPECT_EQ(run.at("started"), "2023-11-14T22:13:20Z");
  EXPECT_EQ(run.at("updated"), "2023-11-14T22:15:00Z");
  EXPECT_EQ(run.at("settings").at("learning_rate"), Json({{"value", "5e-05"}, {"origin", "command line"}}));
  EXPECT_EQ(run.at("hosts"), Json({"node1", "node2"}));
  EXPECT_EQ(run.at("commit"), "abc123");
  EXPECT_EQ(run.at("total_steps"), 93);
  EXPECT_EQ(run.at("checkpoints"), Json::array({"out/checkpoint-62"}));
  EXPECT_EQ(run.at("summary"), Json({{"train_loss", 1.25}}));
  EXPECT_FALSE(run.contains("metrics"));
  EXPECT_EQ(run.at("last_values").at("step"), 10);
  EXPECT_EQ(run.at("last_values").at("train/samples_per_second"), 12.0);
  const std::vector<LogRecord> metrics = read_run_record(folder_).metrics;
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[0].number("step"), 10);
  EXPECT_EQ(metrics[0].number("loss"), 1.5);
  EXPECT_TRUE(std::isnan(*metrics[0].number("grad_norm")));
}

TEST_F(RecordedRun, ValuesOfSettingsHaveTheirTypes) {
  RunRecord typed = description();
  typed.settings = {{"learning_rate", "5e-05", "command line", 5e-5},
                    {"num_train_epochs", "3", "default", 3.0},
                    {"fp16", "true", "default", true},
                    {"max_steps", "-1", "default", std::int64_t{-1}},
                    {"strategy", "zero2", "decided by the run, auto (default)", std::string("zero2")}};
  RunRecorder(folder_ / "run.json", typed, secrets()).on_train_begin({});
  const Json settings = read_json_file(folder_ / "run.json").at("settings");
  EXPECT_EQ(settings.at("learning_rate").at("value"), Json(5e-5));
  EXPECT_EQ(settings.at("fp16").at("value"), Json(true));
  EXPECT_EQ(settings.at("max_steps").at("value"), Json(-1));
  EXPECT_EQ(settings.at("strategy").at("value"), Json("zero2"));
  const RunRecord run = read_run_record(folder_);  // texts, whatever the file has
  for (const RecordedSetting& setting : typed.settings) EXPECT_EQ(run.setting(setting.name)->value, setting.value);
}

TEST_F(RecordedRun, HoldsNoSecrets) {
  const auto file = folder_ / "run.json";
  RunRecorder recorder(file, description(), secrets());
  recorder.on_train_begin({});
  recorder.on_train_end({}, RunEnd::kFailed, "refused: local-12345678 is wrong");
  const std::string text = read_file(file);
  for (const char* secret : {"hf_abcdefgh", "local-12345678"}) {
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
  }
  const Json run = read_json_file(file);
  EXPECT_EQ(run.at("settings").at("hub_token").at("value"), "(set)");
  EXPECT_EQ(run.at("settings").at("tokenizer_name").at("value"), "bloom");
  EXPECT_EQ(run.at("exit_reason"), "refused: (set) is wrong");
}

TEST_F(RecordedRun, AResumedRunKeepsWhatWasBeforeItsFirstStep) {
  const auto file = folder_ / "run.json";
  RunRecorder recorder(file, description(), secrets(),
                       {{{"step", std::int64_t{10}}, {"loss", 2.0}}, {{"step", std::int64_t{20}}, {"loss", 1.0}}});
  recorder.on_train_begin({15, 93, 0.5, 1700000000});
  recorder.on_log({20, 93, 0.6, 1700000001}, {{"loss", 1.5}});
  recorder.on_train_end({20, 93, 0.6, 1700000001}, RunEnd::kFinished, "");
  const std::vector<LogRecord> metrics = read_run_record(file).metrics;
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[0].number("loss"), 2.0);
  EXPECT_EQ(metrics[1].number("loss"), 1.5);
}

TEST_F(RecordedRun, LosesOnlyTheLineThatWasCutOff) {
  RunRecorder recorder(folder_ / "run.json", description(), secrets());
  recorder.on_train_begin({0, 93, 0, 1700000000});
  for (const std::int64_t step : {10, 20}) {
    recorder.on_log({step, 93, 0.1, 1700000000.125}, {{"loss", 0.1 * static_cast<double>(step)}});
  }
  recorder.on_train_end({20, 93, 0.6, 1700000001}, RunEnd::kFinished, "");
  const RunRecord whole = read_run_record(folder_), brief = read_run_record(folder_, RunDetail::kBrief);
  EXPECT_EQ(whole.metrics.at(1).number("loss"), 0.1 * 20);  // every bit
  EXPECT_EQ(whole.metrics.at(1).number("time"), 1700000000.125);
  EXPECT_TRUE(brief.metrics.empty());
  EXPECT_EQ(brief.last("loss"), 0.1 * 20);
  const std::string text = read_file(folder_ / kMetricsFile);
  write_file_atomically(folder_ / kMetricsFile, text.substr(0, text.size() - 5));
  const RunRecord cut = read_run_record(folder_);
  ASSERT_EQ(cut.metrics.size(), 1u);
  EXPECT_EQ(cut.metrics[0].number("step"), 10);
}

TEST_F(RecordedRun, KeepsTheSeriesOfItsRanksInAFileBesideIt) {
  std::vector<RankRecord> ranks(2);
  ranks[1].rank = 1;
  ranks[1].host = "node2";
  ranks[1].numbers = {{"allocated_peak_MB", 100.125}};
  ranks[1].parts = {{"forward", 1.5, 0.25}};
  ranks[1].series.period_seconds = 5;
  ranks[1].series.allocated_MB = {100.5, NAN, 101.256};
  RunRecorder recorder(folder_ / "run.json", description(), secrets());
  recorder.on_train_begin({0, 93, 0, 1700000000});
  recorder.set_ranks(ranks);
  recorder.on_train_end({93, 93, 3, 1700000001}, RunEnd::kFinished, "");
  const RankRecord read = read_run_record(folder_).ranks.at(1);
  EXPECT_EQ(read.host, "node2");
  EXPECT_EQ(read.numbers.number("allocated_peak_MB"), 100.125);
  EXPECT_EQ(read.parts.at(0).mean_ms, 1.5);
  EXPECT_EQ(read.series.period_seconds, 5);
  ASSERT_EQ(read.series.allocated_MB.size(), 3u);
  EXPECT_TRUE(std::isnan(read.series.allocated_MB[1]));
  EXPECT_EQ(read.series.allocated_MB[2], 101.26);
  EXPECT_TRUE(read_run_record(folder_, RunDetail::kBrief).ranks.at(1).series.allocated_MB.empty());
  RunRecorder(folder_ / "run.json", description(), {}).on_train_begin({});  // another run in the same folder
  EXPECT_FALSE(std::filesystem::exists(folder_ / kUsageFile));
}

TEST_F(RecordedRun, HasTheStepAtWhichItWasStopped) {
  RunRecorder recorder(folder_ / "run.json", description(), secrets());
  recorder.on_train_begin({0, 720, 0, 1700000000});
  recorder.on_log({100, 720, 0.1, 1700000001}, {{"loss", 1.5}});
  EXPECT_FALSE(read_run_record(folder_).steps_done.has_value());
  recorder.on_train_end({134, 720, 0.2, 1700000002}, RunEnd::kInterrupted, "SIGTERM");
  EXPECT_EQ(read_run_record(folder_).steps_done, 134);
}

TEST_F(RecordedRun, IsWrittenDespiteTextThatIsNotUtf8) {
  const auto file = folder_ / "run.json";
  RunRecorder recorder(file, RunRecord(), {});
  recorder.on_train_begin({});
  recorder.on_train_end({}, RunEnd::kFailed, "file \xff is broken");
  EXPECT_EQ(read_json_file(file).at("exit_reason"), "file \xEF\xBF\xBD is broken");
}

TEST_F(RecordedRun, IsReadBack) {
  Listeners listeners;
  listeners.add(std::make_unique<RunRecorder>(folder_ / "run.json", description(), secrets()));
  listeners.on_train_begin({0, 93, 0, 1700000000});
  listeners.on_log({10, 93, 0.32, 1700000010}, {{"loss", 1.5}, {"grad_norm", NAN}, {"epoch", 0.32}});
  listeners.on_log({20, 93, 0.64, 1700000020}, {{"loss", 1.25}, {"epoch", 0.64}});
  listeners.on_save({31, 93, 1.0, 1700000020}, {"out/checkpoint-31", {"out/checkpoint-31"}});
  listeners.on_summary({93, 93, 3, 1700000099}, {{"avg_mem_alloc_MB", 512.5}});
  listeners.on_train_end({93, 93, 3, 1700000100}, RunEnd::kFinished, "");
  const RunRecord run = read_run_record(folder_);  // the folder or its run.json
  EXPECT_EQ(run.file, folder_ / "run.json");
  EXPECT_EQ(run.status, "finished");
  EXPECT_EQ(run.started, "2023-11-14T22:13:20Z");
  EXPECT_EQ(run.commit, "abc123");
  EXPECT_EQ(run.hosts, (std::vector<std::string>{"node1", "node2"}));
  EXPECT_EQ(run.checkpoints, std::vector<std::string>{"out/checkpoint-31"});
  EXPECT_EQ(run.total_steps, 93);
  EXPECT_EQ(run.steps_done, 93);
  ASSERT_NE(run.setting("learning_rate"), nullptr);
  EXPECT_EQ(run.setting("learning_rate")->value, "5e-05");
  EXPECT_EQ(run.setting("learning_rate")->origin, "command line");
  EXPECT_EQ(run.setting("no_such"), nullptr);
  EXPECT_EQ(run.last("loss"), 1.25);
  EXPECT_TRUE(std::isnan(*run.last("grad_norm")));
  EXPECT_FALSE(run.last("f1").has_value());
  EXPECT_EQ(run.summary.number("avg_mem_alloc_MB"), 512.5);
  ASSERT_EQ(run.metrics.size(), 2u);
  EXPECT_EQ(run.metrics[1].number("step"), 20);
}

TEST_F(RecordedRun, OfANewerFormatOrBrokenIsRefused) {
  const auto refusal = [&](const std::string& text) -> std::string {
    write_file_atomically(folder_ / "run.json", text);
    try {
      read_run_record(folder_);
    } catch (const UsageError& error) {
      return std::string(error.what()).substr(folder_.string().size() + 1);
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(R"({"format": 4})"),
            "run.json: format 4, but this tessera reads up to format 3: use the version that wrote it, or newer");
  EXPECT_EQ(refusal("[1]"), "run.json: not a run's record: expected an object with \"format\"");
  EXPECT_EQ(refusal(R"({"format": 1, "status": 5})"), "run.json: \"status\" has an unexpected type");
  EXPECT_EQ(refusal(R"({"format": 1})"), "run.json: \"status\" is missing");
  EXPECT_EQ(refusal("{").substr(0, 10), "run.json:1");
}

TEST(SecretNames, AreThoseOfKeysAndTokens) {
  for (const char* name :
       {"WANDB_API_KEY", "HF_TOKEN", "hub_token", "PGPASSWORD", "AWS_ACCESS_KEY_ID", "db-password", "OPENAI_APIKEY"}) {
    EXPECT_TRUE(is_secret_name(name)) << name;
  }
  for (const char* name : {"tokenizer_name", "max_new_tokens", "num_tokens", "keys", "secretary"}) {
    EXPECT_FALSE(is_secret_name(name)) << name;
  }
}

TEST_F(RecordedRun, SaysThatItIsAliveDuringALongStep) {
  const auto file = folder_ / "run.json";
  RunRecorder recorder(file, description(), secrets());
  recorder.touch(1700000000);  // before it has begun: nothing
  recorder.on_train_begin({0, 93, 0, 1700000000});
  recorder.touch(1700000030);
  EXPECT_EQ(read_json_file(file).at("updated"), "2023-11-14T22:13:20Z");  // too soon
  recorder.touch(1700000600);
  EXPECT_EQ(read_json_file(file).at("updated"), "2023-11-14T22:23:20Z");
  recorder.on_train_end({93, 93, 3, 1700000700}, RunEnd::kFinished, "");
  recorder.touch(1700009999);
  EXPECT_EQ(read_json_file(file).at("updated"), "2023-11-14T22:25:00Z");
}

TEST_F(RecordedRun, NamesItsMemoryLogsAndWhenTheyBegan) {
  const auto file = folder_ / "run.json";
  RunRecorder recorder(file, description(), secrets());
  recorder.on_train_begin({0, 93, 0, 1700000000});
  recorder.set_memory_logs({{}, {folder_ / "cpu_memory/7/cpu.txt"}, {folder_ / "cpu_memory/7/cgroup.txt"}}, 1699999990);
  recorder.on_train_end({93, 93, 3, 1700000700}, RunEnd::kFinished, "");
  const RunRecord run = read_run_record(file);
  EXPECT_EQ(run.cgroup_logs, std::vector<std::string>{"cpu_memory/7/cgroup.txt"});
  EXPECT_EQ(run.host_logs_start_seconds, -10);
}

}  // namespace
}  // namespace tessera
