// `tessera evaluate` as users start it, on a folder that `tessera train` left.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "core/json.h"
#include "support/log_lines.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kData = TESSERA_TEST_DATA_FOLDER;
const std::string kRows = kData + "/squad/sample.jsonl";
const std::string kTokenizer = kData + "/squad/tokenizer";

// The first value with this key in the lines of a run; -1: none.
double value_of(const std::string& output, const std::string& key) {
  for (const LogLine& line : parse_log(output)) {
    if (const auto value = line.record.number(key)) return *value;
  }
  return -1;
}

class EvaluateCommand : public ::testing::Test {
 protected:
  EvaluateCommand() {
    ::setenv("OMP_NUM_THREADS", "1", 1);
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }

  std::string out(const std::string& name) const { return (folder_ / name).string(); }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(out(name)) << content;
    return out(name);
  }

  // Trains a BLOOM in `name` that knows the first 8 rows more or less by heart, and evaluates it on the same number.
  Ended train_bloom(const std::string& name) const {
    Json config = read_json_file(kData + "/train_command/bloom.json");
    config["hidden_size"] = 96;
    return run_tessera(fmt::format(
        "train bloom-qa --device cpu --output_dir {} --config_name {} --tokenizer_name {} --train_file {} "
        "--validation_file {} --max_length 160 --max_train_samples 8 --max_eval_samples 8 --learning_rate 4e-3 "
        "--per_device_train_batch_size 4 --gradient_accumulation_steps 1 --num_train_epochs 40 --max_new_tokens 20 "
        "--eval_strategy no --do_eval --save_strategy no --report_to none --disable_tqdm",
        out(name), file("config.json", config.dump()), kTokenizer, kRows, kRows));
  }

  // What it prints to standard output only.
  Ended evaluate(const std::string& arguments, int num_ranks = 0) const {
    const std::string words = fmt::format("evaluate --device cpu {} 2>{}", arguments, out("errors"));
    return run_tessera(words, num_ranks);
  }
  Json evaluate_json(const std::string& arguments, int num_ranks = 0) const {
    const Ended ended = evaluate(arguments + " --json", num_ranks);
    EXPECT_EQ(ended.status, 0) << arguments << ended.output << read_file(out("errors"));
    return ended.status == 0 ? parse_json(ended.output, "standard output") : Json();
  }

  const TestFolder folder_;
};

TEST_F(EvaluateCommand, FindsWhatTheTrainingFoundOnAnyNumberOfRanks) {
  const Ended trained = train_bloom("model");
  ASSERT_EQ(trained.status, 0) << trained.output;
  ASSERT_GT(value_of(trained.output, "f1"), 0.5) << trained.output;
  const std::string what =
      fmt::format("--model {} --validation_file {} --max_length 160 --max_new_tokens 20 ", out("model"), kRows);

  const Ended lines = evaluate(what + "--max_eval_samples 8");
  ASSERT_EQ(lines.status, 0) << lines.output << read_file(out("errors"));
  EXPECT_NEAR(value_of(lines.output, "eval_loss"), value_of(trained.output, "eval_loss"), 1e-6) << lines.output;
  EXPECT_EQ(value_of(lines.output, "exact_match"), value_of(trained.output, "exact_match")) << lines.output;
  EXPECT_EQ(value_of(lines.output, "f1"), value_of(trained.output, "f1")) << lines.output;
  EXPECT_TRUE(contains(lines.output, "Evaluation Metrics: {'exact_match': ")) << lines.output;
  EXPECT_FALSE(contains(lines.output, "'epoch'")) << lines.output;

  // All 37 rows, most of which it has never seen.
  const Json alone = evaluate_json(what + "--predictions_file " + out("alone.json"));
  EXPECT_EQ(alone.at("eval_samples"), 37);
  EXPECT_GT(alone.at("f1").get<double>(), 0.1);
  EXPECT_LT(alone.at("f1").get<double>(), value_of(trained.output, "f1"));
  for (const char* key : {"eval_runtime", "eval_samples_per_second", "eval_steps_per_second", "generation_runtime"}) {
    EXPECT_GT(alone.at(key).get<double>(), 0) << key;
  }
  EXPECT_EQ(read_json_file(out("alone.json")).size(), 37U);
  struct Case {
    int num_ranks;
    const char* spread;
  };
  for (const Case& each : {Case{2, ""}, Case{2, "--strategy full_shard"}, Case{3, "--strategy zero3 --offload_param"},
                           Case{3, "--strategy hybrid_shard"}, Case{2, "--strategy zero2"}}) {
    const Json spread = evaluate_json(fmt::format("{} --predictions_file {} {}", what, out("spread.json"), each.spread),
                                      each.num_ranks);
    for (const char* key : {"eval_loss", "exact_match", "f1", "eval_samples"}) {
      EXPECT_EQ(spread.at(key), alone.at(key)) << key << " at " << each.num_ranks << " ranks " << each.spread;
    }
    EXPECT_EQ(read_file(out("spread.json")), read_file(out("alone.json"))) << each.num_ranks << each.spread;
  }

  const Json half = evaluate_json(what + "--bf16");
  EXPECT_NEAR(half.at("eval_loss").get<double>(), alone.at("eval_loss").get<double>(), 0.05);
  EXPECT_NE(half.at("eval_loss"), alone.at("eval_loss"));
  const Json loss_alone = evaluate_json(what + "--no_predict_with_generate --per_device_eval_batch_size 3");
  EXPECT_NEAR(loss_alone.at("eval_loss").get<double>(), alone.at("eval_loss").get<double>(), 1e-6);
  EXPECT_FALSE(loss_alone.contains("f1"));
}

// The first loss that Hugging Face's Trainer logs is that of this folder's model on the first four rows.
TEST_F(EvaluateCommand, ComputesTheLossThatHuggingFacesTrainerComputes) {
  const Json reference = read_json_file(kData + "/train_command/trainer_losses.json");
  const Json& first = reference.at("cases").front();
  const Json found = evaluate_json(
      fmt::format("--model {} --tokenizer_name {} --validation_file {} --max_length {} --max_eval_samples {} "
                  "--label_mode full --predict_with_generate false",
                  kData + "/train_command/model", kTokenizer, kRows, reference.at("max_length").dump(),
                  first.at("arguments").at("per_device_train_batch_size").dump()));
  EXPECT_NEAR(found.at("eval_loss").get<double>(), first.at("loss").front().get<double>(), 1e-4);
}

// A GPT has positions for a fixed number of tokens: the prompts leave room for the answers.
TEST_F(EvaluateCommand, EvaluatesAGptUnderLaunch) {
  const Ended trained = run_tessera(fmt::format(
      "train gpt-qa --device cpu --output_dir {} --tokenizer_name {} --train_file {} --max_length 96 --seq_length 96 "
      "--vocab_size 500 --hidden_size 32 --num_layers 2 --num_heads 4 --ff_dim 48 --max_train_samples 8 "
      "--positions learned --num_train_epochs 1 --save_strategy no --report_to none --disable_tqdm",
      out("gpt"), kTokenizer, kRows));
  ASSERT_EQ(trained.status, 0) << trained.output;
  const std::string what =
      fmt::format("--model {} --validation_file {} --max_length 96 --max_eval_samples 5 ", out("gpt"), kRows);
  const Ended without_room = evaluate(what + "--json");
  EXPECT_EQ(without_room.status, 2);
  EXPECT_TRUE(contains(read_file(out("errors")),
                       "--max_new_tokens 50 leaves 47 of the model's positions for question and answer"));
  const Json alone = evaluate_json(what + "--max_new_tokens 10");
  const Ended launched =
      run_shell(fmt::format("{} launch --nproc_per_node 2 evaluate --device cpu {} --max_new_tokens 10 --json 2>{}",
                            binary(), what, out("errors")));
  ASSERT_EQ(launched.status, 0) << launched.output << read_file(out("errors"));
  const Json spread = parse_json(launched.output, "standard output");
  EXPECT_EQ(spread.at("eval_loss"), alone.at("eval_loss"));
  EXPECT_EQ(spread.at("f1"), alone.at("f1"));
}

TEST_F(EvaluateCommand, EndsWithOneMessageAtBadInput) {
  const std::string model = kData + "/train_command/model";
  const fs::path without_weights = folder_ / "without_weights";
  fs::create_directories(without_weights);
  fs::copy_file(model + "/config.json", without_weights / "config.json");
  const std::string empty = file("empty.json", R"({"data": []})");
  const std::string unanswered =
      file("unanswered.jsonl",
           R"({"id": "1", "context": "c", "question": "q", "answers": {"text": [], "answer_start": []}})");
  // A vocabulary of 100 for a tokenizer of 1,024.
  const fs::path small = folder_ / "small";
  Json config = read_json_file(kData + "/train_command/bloom.json");
  config["vocab_size"] = 100;
  fs::create_directories(small);
  std::ofstream(small / "config.json") << config.dump();
  const std::string good =
      fmt::format("--model {} --tokenizer {} --validation_file {} --max_length 160 ", model, kTokenizer, kRows);
  struct Case {
    std::string arguments, message;
    int num_ranks = 0;
    int status = 2;
  };
  const std::vector<Case> cases = {
      {"--validation_file " + kRows, "--model FOLDER is missing"},
      {"--model " + model, "--validation_file FILE is missing"},
      {fmt::format("--model {} --validation_file {}", model, kRows), "has no tokenizer: give --tokenizer_name"},
      {fmt::format("--model {} --tokenizer {} --validation_file {}", without_weights.string(), kTokenizer, kRows),
       "without_weights"},
      {fmt::format("--model {} --validation_file {}", out("nowhere"), kRows), "nowhere"},
      {fmt::format("--model {} --tokenizer {} --validation_file {}", small.string(), kTokenizer, kRows),
       "beyond the model's vocabulary of 100", 2},
      {good + "--validation_file " + empty, "empty.json"},
      {good + "--validation_file " + unanswered, "none of its 1 rows has an answer"},
      {good + "--validation_file " + out("absent.json"), "absent.json"},
      {good + "--max_length 5", "max_length"},
      {good + "--fp16 --bf16", "--fp16 and --bf16 exclude each other"},
      {good + "--strategy single", "there are 2 ranks", 2},
      {good + "--strategy zero1 --offload_param", "offload"},
      {good + "--strategy fast", "fast"},
      {good + "--predictions_file " + out("no/such/file"), "cannot write in"},
      {good + "--predictions_file " + out("file") + " --no_predict_with_generate", "needs --predict_with_generate"},
      {good + "--batch_size 3", "batch_size"},
  };
  for (const Case& each : cases) {
    const Ended ended = run_tessera("evaluate --device cpu " + each.arguments, each.num_ranks);
    EXPECT_EQ(ended.status, each.status) << each.arguments << ended.output;
    EXPECT_TRUE(contains(ended.output, each.message)) << each.arguments << "\n" << ended.output;
    EXPECT_FALSE(contains(ended.output, "eval_loss")) << each.arguments << ended.output;
  }
}

// `tessera demo`, shortened to one epoch.
TEST(Demo, TrainsAsksAndLeavesAModelAndASummary) {
  const TestFolder folder;
  const Ended ended = run_shell(fmt::format("cd {} && {} demo --epochs 1", folder.path().string(), binary()));
  EXPECT_EQ(ended.status, 0) << ended.output;
  for (const char* name :
       {"summary.txt", "model.safetensors", "config.json", "tokenizer.json", "run.json", "report.html"}) {
    EXPECT_TRUE(fs::exists(folder / "tessera-demo" / name)) << name;
  }
  EXPECT_TRUE(contains(ended.output, "learns 48 questions: two ranks, each keeps half of it\n")) << ended.output;
  EXPECT_TRUE(contains(ended.output, " launch --nproc_per_node 2 train bloom-qa ")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "F1              0.00 before, 0.00 after")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "settings that differ\n  setting   ")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "To try next:")) << ended.output;
  EXPECT_FALSE(contains(ended.output, "./x")) << "there is no repository: " << ended.output;
  const Ended again = run_tessera("demo " + folder.path().string());
  EXPECT_EQ(again.status, 2) << "another's folder is left alone: " << again.output;
  // Nor is a run's folder replaced that no demo made.
  std::ofstream(folder / "run.json") << R"({"settings": {"train_file": {"value": "mine.json"}}})";
  EXPECT_EQ(run_tessera("demo " + folder.path().string()).status, 2);
  EXPECT_TRUE(fs::exists(folder / "run.json"));
}

// ./x demo, shortened to one epoch, as on a machine without MPI.
TEST(Demo, TrainsOnOneRankAndSaysSo) {
  const TestFolder parent;
  const fs::path folder = parent / "demo";
  ::setenv("TESSERA", binary().c_str(), 1);
  const Ended ended = run_shell(fmt::format("{}/tools/demo.sh {} 1 'no MPI'", TESSERA_SOURCE_FOLDER, folder.string()));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "==> One rank trains instead of two: no MPI\n")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "learns 48 questions: one rank\n")) << ended.output;
  EXPECT_FALSE(contains(ended.output, " launch ")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "--config_name examples/demo/bloom.json")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "./x test")) << ended.output;
  EXPECT_TRUE(fs::exists(folder / "summary.txt"));
}

}  // namespace
}  // namespace tessera
