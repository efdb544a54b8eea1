// `tessera train` as users start it: small models on a small sample of SQuAD, alone and on two ranks.
#include "commands/train_command.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include "core/file.h"
#include "core/json.h"
#include "listeners/console_text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class TrainCommand : public TrainCommandTest {
 protected:
  // A run into output folder `name`.
  Ended train(const std::string& job, const std::string& name, const std::string& arguments, int num_ranks = 0) const {
    return run_tessera(fmt::format("train {} --device cpu --output_dir {} --disable_tqdm --report_to none {}", job,
                                   out(name), arguments),
                       num_ranks);
  }
  // bloom-qa from scratch, evaluated: 3 epochs of 16 rows, 2 rows x 2 micro-steps.
  Ended bloom(const std::string& name, const std::string& arguments, int num_ranks = 0) const {
    return TrainCommandTest::bloom(name,
                                   fmt::format("--validation_file {} --max_eval_samples 5 --per_device_eval_batch_size "
                                               "2 --max_new_tokens 4 {}",
                                               kTestRows, arguments),
                                   num_ranks);
  }
};

// The lines of losses, evaluations and metrics, except what depends on the clock.
std::vector<std::string> numbers_of(const std::string& output) {
  std::vector<std::string> lines;
  for (const LogLine& line : parse_log(output)) {
    LogRecord record;
    for (const auto& [key, value] : line.record.entries()) {
      if (key.find("runtime") == std::string::npos && key.find("per_second") == std::string::npos)
        record.set(key, value);
    }
    lines.push_back(line.label + format_log_line(record));
  }
  return lines;
}

TEST_F(TrainCommand, LogsEvaluatesAnswersAndLeavesAModelFolder) {
  const Ended ended = bloom("alone", "--strategy single");
  ASSERT_EQ(ended.status, 0) << ended.output;
  const std::vector<double> losses = logged(ended.output, "loss"), rates = logged(ended.output, "learning_rate");
  ASSERT_EQ(losses.size(), 12U) << ended.output;
  EXPECT_NEAR(losses.front(), std::log(1024.0), 0.5);
  EXPECT_LT(losses.back(), losses.front() - 1);
  EXPECT_DOUBLE_EQ(rates.front(), 1e-2 * 11 / 12);
  EXPECT_EQ(rates.back(), 0);
  EXPECT_EQ(logged(ended.output, "eval_loss").size(), 3U);
  EXPECT_EQ(logged(ended.output, "epoch").back(), 3);
  EXPECT_EQ(logged(ended.output, "train_loss").size(), 1U);
  EXPECT_TRUE(contains(ended.output, "Model and tokenizer saved to " + out("alone"))) << ended.output;
  EXPECT_EQ(logged(ended.output, "f1").size(), 1U);
  EXPECT_TRUE(contains(ended.output, "Evaluation Metrics: {'exact_match': ")) << ended.output;
  for (const char* name : {"config.json", "model.safetensors", "generation_config.json", "tokenizer.json",
                           "tokenizer_config.json", "run.json", "metrics.csv"}) {
    EXPECT_TRUE(fs::exists(fs::path(out("alone")) / name)) << name;
  }
  const Json record = read_json_file(fs::path(out("alone")) / "run.json");
  EXPECT_EQ(record.at("status"), "finished");
  EXPECT_EQ(record.at("total_steps"), 12);
  EXPECT_TRUE(record.at("summary").contains("f1"));
  const Ended generated = run_tessera(
      fmt::format("generate --device cpu --model {} --prompt Question: --max_new_tokens 2 --json", out("alone")));
  EXPECT_EQ(generated.status, 0) << generated.output;
}

// Rows that keep gradients whole add micro-steps before ranks, the others ranks before micro-steps. Within a kind, all
// numbers and weights have the same bits; between the two, the printed losses are the same.
TEST_F(TrainCommand, PrintsTheSameLossesUnderEveryStrategy) {
  const std::vector<std::vector<std::string>> kinds = {
      {"ddp", "zero0", "no_shard", "zero1"},
      {"full_shard", "zero2", "zero3", "shard_grad_op", "hybrid_shard", "zero3 --offload_optimizer --offload_param"}};
  std::vector<double> losses;
  int num_runs = 0;
  for (const std::vector<std::string>& kind : kinds) {
    std::vector<std::string> numbers;
    std::string weights;
    for (const std::string& strategy : kind) {
      const std::string name = fmt::format("out{}", num_runs++);
      const Ended ended = bloom(name, "--merge_accumulation off --strategy " + strategy, 2);
      ASSERT_EQ(ended.status, 0) << strategy << ended.output;
      ASSERT_EQ(logged(ended.output, "eval_loss").size(), 3U) << strategy << ended.output;
      if (losses.empty()) losses = logged(ended.output, "loss");
      ASSERT_EQ(losses.size(), 6U) << ended.output;
      EXPECT_EQ(logged(ended.output, "loss"), losses) << strategy;
      const std::string found = read_file(fs::path(out(name)) / "model.safetensors");
      if (numbers.empty()) {
        numbers = numbers_of(ended.output);
        weights = found;
      }
      EXPECT_EQ(numbers_of(ended.output), numbers) << strategy;
      EXPECT_TRUE(found == weights) << strategy;
    }
  }
}

TEST_F(TrainCommand, TwoRanksComputeWhatOneComputesOfTheSameBatches) {
  const Ended one = bloom("one", "--no_shuffle --merge_accumulation off");
  const Ended two = bloom("two", "--no_shuffle --gradient_accumulation_steps 1", 2);
  const Ended merged = bloom("merged", "--no_shuffle --merge_accumulation on --gradient_checkpointing");
  ASSERT_EQ(one.status + two.status + merged.status, 0) << one.output << two.output << merged.output;
  for (const Ended* other : {&two, &merged}) {
    for (const char* key : {"loss", "grad_norm", "eval_loss"}) {
      const std::vector<double> found = logged(other->output, key), wanted = logged(one.output, key);
      ASSERT_EQ(found.size(), wanted.size()) << key;
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 2e-4 * wanted[i]) << key << i;
    }
  }
}

void expect_close(const std::vector<double>& found, const Json& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double wanted = expected[i].get<double>();
    EXPECT_NEAR(found[i], wanted, 1e-4 * wanted) << what << ", step " << i + 1;
  }
}

// The same weights, rows and arguments (tools/references/trainer_losses.py). That release logs the rate that a step
// used; we log the rate after it.
TEST_F(TrainCommand, ComputesWhatHuggingFacesTrainerComputes) {
  const Json reference = read_json_file(kTestData + "/train_command/trainer_losses.json");
  const Json& cases = reference.at("cases");
  ASSERT_EQ(cases.size(), 4U);
  int num_runs = 0;
  for (const Json& each : cases) {
    std::string arguments;
    for (const auto& [key, value] : each.at("arguments").items()) {
      arguments += fmt::format("--{} {} ", key, value.is_string() ? value.get<std::string>() : value.dump());
    }
    const Ended ended =
        train("bloom-qa", fmt::format("hf{}", num_runs++),
              fmt::format(
                  "--model_name_or_path {} --tokenizer_name {} --train_file {} --max_train_samples {} --max_length {} "
                  "--max_steps {} --label_mode full --no_shuffle --logging_steps 1 --save_strategy no {}",
                  kTestData + "/train_command/model", kTestTokenizer, kTestRows, reference.at("num_rows").dump(),
                  reference.at("max_length").dump(), reference.at("num_steps").dump(), arguments));
    ASSERT_EQ(ended.status, 0) << ended.output;
    expect_close(logged(ended.output, "loss"), each.at("loss"), "loss with " + arguments);
    expect_close(logged(ended.output, "grad_norm"), each.at("grad_norm"), "norm with " + arguments);
    std::vector<double> rates = logged(ended.output, "learning_rate");
    Json theirs = each.at("learning_rate");
    ASSERT_EQ(rates.size(), 30U);
    rates.pop_back();
    theirs.erase(0);
    expect_close(rates, theirs, "rate with " + arguments);
  }
}

TEST_F(TrainCommand, AStepThatTheLossScaleSkipsDoesNotAdvanceTheSchedule) {
  const Ended ended = bloom("fp16", "--fp16 --initial_scale_power 22 --eval_strategy no --predict_with_generate false");
  ASSERT_EQ(ended.status, 0) << ended.output;
  const std::vector<double> norms = logged(ended.output, "grad_norm"), rates = logged(ended.output, "learning_rate");
  ASSERT_EQ(norms.size(), 12U) << ended.output;
  double num_advanced = 0;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    if (std::isfinite(norms[i])) ++num_advanced;
    EXPECT_NEAR(rates[i], 1e-2 * (12 - num_advanced) / 12, 1e-12) << ended.output;
  }
  EXPECT_LT(num_advanced, 12) << ended.output;
  EXPECT_GT(num_advanced, 3) << ended.output;
  const int num_skipped = 12 - static_cast<int>(num_advanced);
  EXPECT_EQ(count_of(ended.output, "skipping the update"), num_skipped) << ended.output;
  EXPECT_EQ(record("fp16").at("summary").at("skipped_steps"), num_skipped);
}

TEST_F(TrainCommand, DryRunPrintsThePlanAndTrainsNothing) {
  const Ended ended = bloom("dry", "--dry_run --strategy zero3", 2);
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "6 steps of 2 x 2 rows on 2 ranks")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "merge_accumulation auto: on")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "activations")) << ended.output;
  EXPECT_TRUE(parse_log(ended.output).empty()) << ended.output;
  EXPECT_FALSE(fs::exists(fs::path(out("dry")) / "model.safetensors"));
  const Ended wrong = bloom("dry", "--dry_run --warmup_steps 100");
  EXPECT_EQ(wrong.status, 2) << wrong.output;
}

TEST_F(TrainCommand, PredictsItsSpeedWithoutTraining) {
  const Ended ended = bloom("predicted", "--dry_run --predict_speed --strategy zero3 --warmup_steps 3", 2);
  EXPECT_EQ(ended.status, 0) << ended.output;
  const std::size_t at = ended.output.find("expected: ");
  ASSERT_NE(at, std::string::npos) << ended.output;
  EXPECT_GT(std::stod(ended.output.substr(at + 10)), 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "ms for an update of 8 rows")) << ended.output;
  EXPECT_TRUE(parse_log(ended.output).empty()) << ended.output;
  EXPECT_FALSE(fs::exists(fs::path(out("predicted")) / "model.safetensors"));
  // What a run has beside its updates plays no part, nor does a scale that would skip them.
  for (const char* words : {"--offload_optimizer --units_on_device 2 --strategy zero2", "--profile_steps 5-6 --fp16",
                            "--strategy zero3 --wrap none"}) {
    const Ended other = bloom("predicted", std::string("--dry_run --predict_speed ") + words);
    EXPECT_EQ(other.status, 0) << other.output;
    EXPECT_TRUE(contains(other.output, "expected: ")) << other.output;
    EXPECT_FALSE(contains(other.output, "skipping")) << other.output;
  }
  const Ended wrong = bloom("predicted", "--predict_speed");
  EXPECT_EQ(wrong.status, 2) << wrong.output;
  EXPECT_TRUE(contains(wrong.output, "--predict_speed=true (command line): only with --dry_run")) << wrong.output;
}

TEST_F(TrainCommand, JudgesByF1WhereThatIsAskedFor) {
  const Ended ended = bloom("f1", "--metric_for_best_model f1 --early_stopping_patience 1 --strategy zero3", 2);
  ASSERT_EQ(ended.status, 0) << ended.output;
  // After so short a run all answers are wrong: the second evaluation is no better than the first.
  EXPECT_EQ(logged(ended.output, "eval_f1"), std::vector<double>(2, 0.0)) << ended.output;
  EXPECT_EQ(logged(ended.output, "loss").size(), 4U) << ended.output;
  EXPECT_EQ(read_json_file(fs::path(out("f1")) / "run.json").at("status"), "stopped_early");
}

TEST_F(TrainCommand, LearnsAFewDozenRowsByHeart) {
  Json config = read_json_file(kTestConfig);
  config["hidden_size"] = 128;
  std::ofstream(out("larger.json")) << config.dump();
  const Ended ended = bloom("heart", fmt::format("--config_name {} --num_train_epochs 45 --learning_rate 3e-3 "
                                                 "--max_train_samples 36 "
                                                 "--gradient_accumulation_steps 1 --per_device_train_batch_size 4 "
                                                 "--max_eval_samples 36 --per_device_eval_batch_size 12 "
                                                 "--max_new_tokens 30 --logging_steps 40 --eval_strategy no "
                                                 "--strategy full_shard",
                                                 out("larger.json")));
  ASSERT_EQ(ended.status, 0) << ended.output;
  const std::vector<double> losses = logged(ended.output, "loss");
  EXPECT_LT(losses.back(), 0.2 * losses.front()) << ended.output;
  ASSERT_EQ(logged(ended.output, "f1").size(), 1U) << ended.output;
  EXPECT_GT(logged(ended.output, "f1").front(), 0.9) << ended.output;
}

TEST_F(TrainCommand, TrainsTheGptWithDropoutAlikeUnderEveryStrategyAndUnderLaunch) {
  const Ended under_mpirun = gpt("mpirun", "--strategy full_shard", 2);
  ASSERT_EQ(under_mpirun.status, 0) << under_mpirun.output;
  EXPECT_TRUE(contains(under_mpirun.output, "using the tokenizer's vocabulary of 1024")) << under_mpirun.output;
  const std::vector<double> losses = logged(under_mpirun.output, "loss");
  EXPECT_EQ(losses.size(), 4U) << under_mpirun.output;
  for (const char* strategy : {"ddp", "zero0", "zero1", "zero3", "no_shard", "shard_grad_op", "hybrid_shard"}) {
    const Ended other = gpt(strategy, fmt::format("--strategy {}", strategy), 2);
    ASSERT_EQ(other.status, 0) << other.output;
    EXPECT_EQ(logged(other.output, "loss"), losses) << strategy << "\n" << other.output;
  }
  const Ended launched = run_shell(
      fmt::format("{} launch --nproc_per_node 2 {} {}", binary(), binary(), gpt_words("launch", "--strategy zero2")));
  ASSERT_EQ(launched.status, 0) << launched.output;
  EXPECT_EQ(logged(launched.output, "loss"), losses) << launched.output;
}

TEST_F(TrainCommand, GoesOnFromAFolderAndKeepsTheBestCheckpoint) {
  const Ended first = bloom("first", "--num_train_epochs 1");
  ASSERT_EQ(first.status, 0) << first.output;
  const Ended second = train(
      "bloom-qa", "second",
      fmt::format("--model_name_or_path {} --train_file {} --validation_file {} --max_length 160 "
                  "--max_train_samples 16 --max_eval_samples 5 --per_device_train_batch_size 2 "
                  "--gradient_accumulation_steps 2 --learning_rate 1e-2 --greater_is_better true --logging_steps 1 "
                  "--predict_with_generate false --save_strategy epoch --eval_strategy epoch --save_total_limit 1 "
                  "--load_best_model_at_end --save_hf_weights --strategy zero3",
                  out("first"), kTestRows, kTestRows),
      2);
  ASSERT_EQ(second.status, 0) << second.output;
  // The greatest loss counts as the best: the first.
  const std::vector<double> eval = logged(second.output, "eval_loss");
  ASSERT_EQ(eval.size(), 3U) << second.output;
  ASSERT_GT(eval[0], eval[2]);
  const fs::path best = fs::path(out("second")) / "checkpoint-2", last = fs::path(out("second")) / "checkpoint-6";
  ASSERT_TRUE(fs::exists(best)) << second.output;
  for (const char* name : {"state-00000-of-00002.safetensors", "state-00001-of-00002.safetensors", "state.index.json",
                           "trainer_state.json", "model.safetensors", "tokenizer.json"}) {
    EXPECT_TRUE(fs::exists(last / name)) << name;
  }
  EXPECT_EQ(read_file(fs::path(out("second")) / "model.safetensors"), read_file(best / "model.safetensors"));
  EXPECT_NE(read_file(fs::path(out("second")) / "model.safetensors"), read_file(last / "model.safetensors"));
  EXPECT_EQ(read_json_file(last / "trainer_state.json").at("best_metric").get<double>(), eval[0]);
}

// Dropout, moments, order of rows, schedule: a run cut in two prints and leaves what a run without a break does, though
// its second part uses another strategy of the same kind.
TEST_F(TrainCommand, GoesOnFromACheckpointAsIfItHadNotStopped) {
  const std::string saving = "--save_strategy steps --save_steps 3 --dropout 0.1 ";
  const Ended whole = gpt("whole", saving + "--strategy zero3", 2);
  ASSERT_EQ(whole.status, 0) << whole.output;
  fs::rename(fs::path(out("whole")) / "checkpoint-3", out("kept"));
  const Ended rest = gpt("rest", saving + "--strategy zero2 --resume_from_checkpoint " + out("kept"), 2);
  ASSERT_EQ(rest.status, 0) << rest.output;
  const std::vector<double> all = logged(whole.output, "loss"), last = logged(rest.output, "loss");
  ASSERT_EQ(all.size(), 4U);
  ASSERT_EQ(last.size(), 1U) << rest.output;
  EXPECT_EQ(all.back(), last.back());
  EXPECT_EQ(logged(whole.output, "train_loss"), logged(rest.output, "train_loss"));
  EXPECT_TRUE(read_file(fs::path(out("whole")) / "model.safetensors") ==
              read_file(fs::path(out("rest")) / "model.safetensors"));
  const Ended without = gpt("rest", "--resume_from_checkpoint " + out("whole"), 2);
  EXPECT_EQ(without.status, 2) << without.output;
  EXPECT_TRUE(contains(without.output, "is no checkpoint, but has some")) << without.output;
}

TEST_F(TrainCommand, EndsWithOneMessageAtBadInput) {
  std::ofstream(out("empty.json")) << R"({"data": []})";
  std::ofstream(out("file")) << "";
  Json small = read_json_file(kTestConfig);
  small["vocab_size"] = 100;
  std::ofstream(out("small.json")) << small.dump();
  struct Case {
    std::string arguments, message;
    int num_ranks = 0;
  };
  const std::vector<Case> cases = {
      {fmt::format("--train_file {}", out("empty.json")), "empty.json"},
      {"--max_train_samples 1", "1 training rows for 2 ranks", 2},
      {fmt::format("--config_name {}", out("small.json")), "beyond the model's vocabulary of 100"},
      {fmt::format("--output_dir {}/x", out("file")), "cannot create the folder", 2},
      {"--resume_from_checkpoint true", "has no checkpoint to resume from"},
      {"--metric_for_best_model f1 --predict_with_generate false", "needs --predict_with_generate"},
      {"--wrap_classes NoSuchBlock --strategy zero3", "NoSuchBlock", 2},
      {"--warmup_steps 100", "warmup_steps 100"},
      {"--learning_rate 1e30 --max_grad_norm 0 --lr_scheduler_type constant", "step "},
  };
  for (const Case& each : cases) {
    const Ended ended = bloom("bad", each.arguments, each.num_ranks);
    EXPECT_NE(ended.status, 0) << each.arguments << ended.output;
    EXPECT_TRUE(contains(ended.output, each.message)) << each.arguments << "\n" << ended.output;
    EXPECT_FALSE(contains(ended.output, "Model and tokenizer saved")) << each.arguments;
  }
  const Ended without_tokenizer =
      train("bloom-qa", "bad",
            fmt::format("--model_name_or_path {} --train_file {}", kTestData + "/train_command/model", kTestRows));
  EXPECT_EQ(without_tokenizer.status, 2) << without_tokenizer.output;
  EXPECT_TRUE(contains(without_tokenizer.output, "has no tokenizer: give --tokenizer_name"))
      << without_tokenizer.output;
  const Ended resnet = train("resnet-tinyimagenet", "bad", "--data_dir " + folder_.path().string());
  EXPECT_EQ(resnet.status, 2) << resnet.output;
}

TEST_F(TrainCommand, StopsAtALossThatIsNoNumberNamingStepAndRank) {
  const std::string spoiling = "--learning_rate 1e30 --max_grad_norm 0 --lr_scheduler_type constant";
  const Ended ended = bloom("nan", spoiling + " --strategy full_shard", 2);
  EXPECT_EQ(ended.status, 1) << ended.output;
  const std::regex named(
      R"(step 2: (the loss is -?(nan|inf) on ranks? [01]|the gradient is not finite: rank [01] in unit))");
  EXPECT_TRUE(std::regex_search(ended.output, named)) << ended.output;
  EXPECT_EQ(read_json_file(fs::path(out("nan")) / "run.json").at("status"), "failed");
}

}  // namespace
}  // namespace tessera
