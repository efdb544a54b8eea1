#include "config/schema.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

class SchemaSources : public testing::Test {
 protected:
  SchemaSources() {
    schema_.integer("iters", &num_iterations_, "",
                    {.preset = "20", .at_least = 1, .at_most = 1'000'000, .environment = {"ITERS"}});
    schema_.integer("bucket", &bucket_numel_, "", {.preset = "1000"});
    schema_.real("learning_rate", &lr_, "",
                 {.preset = "5e-5", .aliases = {"lr"}, .environment = {"LEARNING_RATE", "LR"}});
    schema_.boolean("fp16", &fp16_, "", {.environment = {"FP16"}});
    schema_.text("run_name", &run_name_, "", {.environment = {"RUN_NAME"}});
    schema_.bytes("minbytes", &min_bytes_, "", {.preset = "32M"});
    schema_.duration("comm_timeout", &timeout_, "", {.preset = "10m", .environment = {"TESSERA_COMM_TIMEOUT"}});
    schema_.text("api_key", &key_, "", {.environment = {"API_KEY"}, .is_secret = true});
  }

  void read_json(const std::string& text) { schema_.read_json(parse_json(text, "ds.json"), "ds.json"); }
  void read_environment(std::map<std::string, std::string> variables) {
    schema_.read_environment(Environment(std::move(variables)));
  }
  template <typename Read>
  std::string refusal(Read read) {
    try {
      read();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }
  std::string json_refusal(const std::string& text) {
    return refusal([&] { read_json(text); });
  }

  int num_iterations_ = -1;
  std::int64_t bucket_numel_ = -1, min_bytes_ = -1;
  double lr_ = -1;
  bool fp16_ = true;
  std::string run_name_ = "x", key_ = "x";
  std::chrono::milliseconds timeout_{-1};
  Schema schema_{"tessera train", "trains"};
};

TEST_F(SchemaSources, MembersHoldTheirPresetsFromDeclarationOn) {
  EXPECT_EQ(num_iterations_, 20);
  EXPECT_FALSE(fp16_);
  EXPECT_EQ(run_name_, "");
  EXPECT_EQ(key_, "");
  EXPECT_EQ(schema_.at("iters").text(), "20");
  EXPECT_EQ(schema_.at("iters").origin(), "default");
  EXPECT_FALSE(schema_.at("iters").is_set());
}

TEST_F(SchemaSources, JsonGivesNumbersBooleansAndStrings) {
  read_json(R"({"iters": 5, "lr": 0.001, "fp16": true, "run_name": "a", "minbytes": "4G", "comm-timeout": 30})");
  EXPECT_EQ(num_iterations_, 5);
  EXPECT_EQ(lr_, 0.001);
  EXPECT_TRUE(fp16_);
  EXPECT_EQ(run_name_, "a");
  EXPECT_EQ(min_bytes_, std::int64_t{4} << 30);
  EXPECT_EQ(timeout_, std::chrono::seconds(30));
  EXPECT_EQ(schema_.at("iters").origin(), "ds.json");
  read_json(R"({"iters": "6", "lr": "1e-4", "fp16": "False", "minbytes": 1024})");
  EXPECT_EQ(num_iterations_, 6);
  EXPECT_EQ(lr_, 1e-4);
  EXPECT_FALSE(fp16_);
  EXPECT_EQ(min_bytes_, 1024);
}

TEST_F(SchemaSources, JsonFloatsThatAreWholeAreWholeNumbers) {
  read_json(R"({"bucket": 5e8, "minbytes": 1e16, "lr": 1e300})");
  EXPECT_EQ(bucket_numel_, 500'000'000);
  EXPECT_EQ(min_bytes_, 10'000'000'000'000'000);
  EXPECT_EQ(lr_, 1e300);
  EXPECT_EQ(json_refusal(R"({"bucket": 1.5})"), "bucket=1.5 (ds.json): expected a whole number");
  EXPECT_EQ(json_refusal(R"({"bucket": 1e30})"), "bucket=1e+30 (ds.json): expected a whole number");
}

TEST_F(SchemaSources, AWrongJsonTypeIsRefusedByKeyAndOrigin) {
  EXPECT_EQ(json_refusal(R"({"iters": [1]})"),
            "iters (ds.json): expected a whole number from 1 to 1000000, found an array");
  EXPECT_EQ(json_refusal(R"({"iters": true})"),
            "iters (ds.json): expected a whole number from 1 to 1000000, found true or false");
  EXPECT_EQ(json_refusal(R"({"fp16": {"enabled": true}})"), "fp16 (ds.json): expected true or false, found an object");
  EXPECT_EQ(json_refusal(R"({"fp16": 1})"), "fp16 (ds.json): expected true or false, found a number");
  EXPECT_EQ(json_refusal(R"({"run_name": 3})"), "run_name (ds.json): expected text, found a number");
  EXPECT_EQ(json_refusal(R"({"run_name": null})"), "run_name (ds.json): expected text, found null");
  EXPECT_EQ(json_refusal("[1]"), "ds.json: expected an object of settings, found an array");
}

TEST_F(SchemaSources, AWrongJsonValueOrKeyIsRefusedWithItsOrigin) {
  EXPECT_EQ(json_refusal(R"({"iters": 0})"), "iters=0 (ds.json): expected a whole number from 1 to 1000000");
  EXPECT_EQ(json_refusal(R"({"itres": 3})"), "unknown setting itres (ds.json); did you mean iters?");
  EXPECT_EQ(json_refusal(R"({"help": 3})"), "unknown setting help (ds.json); see tessera train --help");
  EXPECT_EQ(json_refusal(R"({"lr": 1, "learning_rate": 2})"),
            "lr is given twice with different values: lr=1 (ds.json) and learning_rate=2 (ds.json); give one");
  EXPECT_EQ(json_refusal(R"({"lr": 1, "learning_rate": 1.0})"), "accepted");
}

TEST_F(SchemaSources, OnlyDeclaredVariablesAreRead) {
  read_environment({{"LR", "0.1"}, {"ITER", "x"}, {"RUN_NAME", ""}, {"FP16", "True"}, {"iters", "x"}});
  EXPECT_EQ(lr_, 0.1);
  EXPECT_TRUE(fp16_);
  EXPECT_FALSE(schema_.at("run_name").is_set());
  EXPECT_EQ(schema_.at("lr").origin(), "LR in the environment");
}

TEST_F(SchemaSources, AWrongVariableIsRefusedByName) {
  EXPECT_EQ(refusal([&] {
              read_environment({{"TESSERA_COMM_TIMEOUT", "soon"}});
            }),
            "--comm_timeout=soon (TESSERA_COMM_TIMEOUT in the environment): expected a duration such as 30s or 10m");
}

TEST_F(SchemaSources, TwoVariablesOfOneSettingMustAgree) {
  EXPECT_EQ(refusal([&] {
              read_environment({{"LEARNING_RATE", "0.1"}, {"LR", "0.2"}});
            }),
            "--learning_rate is given twice with different values: 0.1 (LEARNING_RATE in the "
            "environment) and 0.2 (LR in the environment); give --learning_rate, or unset one");
  read_environment({{"LEARNING_RATE", "0.1"}, {"LR", "1e-1"}});
  EXPECT_EQ(schema_.at("lr").origin(), "LEARNING_RATE in the environment");
}

TEST_F(SchemaSources, VariablesThatContradictEachOtherYieldToAHigherSource) {
  schema_.read_command_line({"--lr", "0.3"});
  read_environment({{"LEARNING_RATE", "0.1"}, {"LR", "0.2"}, {"ITERS", "5"}});
  EXPECT_EQ(lr_, 0.3);
  EXPECT_EQ(num_iterations_, 5);  // what is beside them is read
  EXPECT_EQ(refusal([&] {
              read_environment({{"LEARNING_RATE", "0.1"}, {"LR", "fast"}});
            }),
            "--learning_rate=fast (LR in the environment): expected a number");
}

TEST_F(SchemaSources, VariablesOfAFileYieldToThoseOfTheProcess) {
  schema_.read_env_file(Environment({{"LR", "0.2"}, {"ITERS", "5"}, {"OTHER", "x"}}), "env_vars.sh");
  read_environment({{"LEARNING_RATE", "0.1"}});
  schema_.read_env_file(Environment({{"LR", "0.3"}}), "env_vars.sh");
  EXPECT_EQ(lr_, 0.1);
  EXPECT_EQ(schema_.at("learning_rate").origin(), "LEARNING_RATE in the environment");
  EXPECT_EQ(num_iterations_, 5);
  EXPECT_EQ(schema_.at("iters").origin(), "ITERS in env_vars.sh");
  EXPECT_EQ(refusal([&] {
              schema_.read_env_file(Environment({{"ITERS", "0"}}), "env_vars.sh");
            }),
            "--iters=0 (ITERS in env_vars.sh): expected a whole number from 1 to 1000000");
}

TEST_F(SchemaSources, TwoVariablesOfAFileMustAgree) {
  EXPECT_EQ(refusal([&] {
              schema_.read_env_file(Environment({{"LEARNING_RATE", "0.1"}, {"LR", "0.2"}}), "env_vars.sh");
            }),
            "--learning_rate is given twice with different values: 0.1 (LEARNING_RATE in env_vars.sh) and 0.2 (LR in "
            "env_vars.sh); give --learning_rate, or take one out");
}

TEST_F(SchemaSources, AHiddenSettingIsShownOnlyWhereItIsSet) {
  bool old = false;
  schema_.group("Old");
  schema_.boolean("old_habit", &old, "", {.is_hidden = true});
  for (const std::string& text : {schema_.help_text(), schema_.docs_table(), schema_.config_text()}) {
    EXPECT_EQ(text.find("old_habit"), std::string::npos) << text;
    EXPECT_EQ(text.find("Old"), std::string::npos) << text;
  }
  EXPECT_FALSE(schema_.to_json().contains("old_habit"));
  schema_.read_command_line({"--old_habit"});
  EXPECT_TRUE(old);
  EXPECT_NE(schema_.config_text().find("old_habit"), std::string::npos);
  EXPECT_EQ(schema_.to_json().at("old_habit"), "true");
}

TEST_F(SchemaSources, ALowerRankReadLaterYields) {
  schema_.read_command_line({"--iters", "3"});
  read_json(R"({"iters": 2, "run_name": "json"})");
  read_environment({{"ITERS", "1"}, {"RUN_NAME", "env"}, {"LR", "0.5"}});
  EXPECT_EQ(num_iterations_, 3);
  EXPECT_EQ(run_name_, "json");
  EXPECT_EQ(lr_, 0.5);
  EXPECT_EQ(schema_.at("iters").source(), Source::kCommandLine);
  EXPECT_EQ(schema_.at("iters").origin(), "command line");
  EXPECT_EQ(schema_.at("run_name").source(), Source::kJson);
  EXPECT_EQ(schema_.at("learning_rate").source(), Source::kEnvironment);
}

TEST_F(SchemaSources, ALowerRankReadFirstIsOverruled) {
  read_environment({{"ITERS", "1"}});
  EXPECT_EQ(num_iterations_, 1);
  read_json(R"({"iters": 2})");
  EXPECT_EQ(num_iterations_, 2);
  schema_.read_command_line({"--iters", "20"});  // the default's own value still counts as set
  EXPECT_EQ(num_iterations_, 20);
  read_json(R"({"iters": 2})");
  EXPECT_EQ(num_iterations_, 20);
}

TEST_F(SchemaSources, AWrongValueIsRefusedEvenWhereItWouldYield) {
  schema_.read_command_line({"--iters", "3"});
  EXPECT_EQ(json_refusal(R"({"iters": 0})"), "iters=0 (ds.json): expected a whole number from 1 to 1000000");
  EXPECT_EQ(num_iterations_, 3);
}

TEST_F(SchemaSources, ToJsonHasOneTextForOneValue) {
  schema_.read_command_line({"--lr", "0.00100", "--minbytes=4096M", "--fp16", "yes", "--run_name", "\xff"});
  read_environment({{"API_KEY", "hunter2"}});
  EXPECT_EQ(schema_.to_json().dump(),
            R"json({"iters":"20","bucket":"1000","learning_rate":"0.001","fp16":"true","run_name":")json"
            "\xef\xbf\xbd"
            R"json(","minbytes":"4G","comm_timeout":"10m","api_key":"(set)"})json");
  EXPECT_EQ(key_, "hunter2");
}

TEST_F(SchemaSources, ANameDeclaredTwiceIsOurMistake) {
  bool other = false;
  schema_.boolean("run-name", &other, "");
  EXPECT_THROW(schema_.read_command_line({}), Error);
  EXPECT_THROW(schema_.at("absent"), Error);
}

}  // namespace
}  // namespace tessera
