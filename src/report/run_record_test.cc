#include "report/run_record.h"

#include <cmath>

#include "core/file.h"
#include "train/small_run_for_test.h"

namespace tessera {
namespace {

RunDescription description() {
  RunDescription run;
  run.settings = {{"learning_rate", "5e-05", "command line"},
                  {"hub_token", "hf_abcdefgh", "environment"},
                  {"tokenizer_name", "bloom", "default"},
                  {"note", "key is local-12345678", "command line"}};
  run.versions = {{"tessera", "0.1.0"}};
  run.hosts = {"node1", "node2"};
  run.devices = {"H200"};
  run.command = {"tessera", "train", "--api=local-12345678"};
  run.commit = "abc123";
  run.secret_values = secret_values_of({{"WANDB_API_KEY", "local-12345678"}, {"HOME", "/home/user"}});
  return run;
}

using RunRecord = WithFolder;

TEST_F(RunRecord, HoldsWhatTheRunWasAndDid) {
  const auto file = folder_ / "run.json";
  Listeners listeners;
  listeners.add(std::make_unique<RunRecorder>(file, description()));
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
  ASSERT_EQ(run.at("metrics").size(), 2u);
  EXPECT_EQ(run.at("metrics")[0].at("step"), 10);
  EXPECT_EQ(run.at("metrics")[0].at("loss"), 1.5);
  EXPECT_TRUE(std::isnan(*log_record_of(run.at("metrics")[0], "run").number("grad_norm")));
}

TEST_F(RunRecord, HoldsNoSecrets) {
  const auto file = folder_ / "run.json";
  RunRecorder recorder(file, description());
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

TEST_F(RunRecord, AResumedRunKeepsWhatWasBeforeItsFirstStep) {
  const auto file = folder_ / "run.json";
  RunRecorder recorder(file, description(),
                       {{{"step", std::int64_t{10}}, {"loss", 2.0}}, {{"step", std::int64_t{20}}, {"loss", 1.0}}});
  recorder.on_train_begin({15, 93, 0.5, 1700000000});
  recorder.on_log({20, 93, 0.6, 1700000001}, {{"loss", 1.5}});
  recorder.on_train_end({20, 93, 0.6, 1700000001}, RunEnd::kFinished, "");
  const Json run = read_json_file(file);
  ASSERT_EQ(run.at("metrics").size(), 2u);
  EXPECT_EQ(run.at("metrics")[0].at("loss"), 2.0);
  EXPECT_EQ(run.at("metrics")[1].at("loss"), 1.5);
}

TEST_F(RunRecord, IsWrittenDespiteTextThatIsNotUtf8) {
  const auto file = folder_ / "run.json";
  RunRecorder recorder(file, RunDescription());
  recorder.on_train_begin({});
  recorder.on_train_end({}, RunEnd::kFailed, "file \xff is broken");
  EXPECT_EQ(read_json_file(file).at("exit_reason"), "file \xEF\xBF\xBD is broken");
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

}  // namespace
}  // namespace tessera
