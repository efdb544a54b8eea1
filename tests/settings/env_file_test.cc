#include "settings/env_file.h"

#include "settings/test_load.h"

namespace tessera {
namespace {

const Environment kEnvironment({{"PWD", "/home/u/run"}, {"HOME", "/home/u"}, {"USER", "u"}, {"EMPTY", ""}});

std::vector<EnvFileEntry> parse(const std::string& text) {
  return parse_env_file(text, "env_vars.sh", kEnvironment);
}
std::string value_of(const std::string& text) {
  const std::vector<EnvFileEntry> entries = parse(text);
  return entries.empty()                  ? "(none)"
         : entries.back().unknown.empty() ? entries.back().value
                                          : "?" + entries.back().unknown;
}
std::string refusal_of(const std::string& text) {
  try {
    parse(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(EnvFile, ReadsAssignmentsQuotesAndComments) {
  EXPECT_EQ(value_of("export A=5"), "5");
  EXPECT_EQ(value_of("A=5\n"), "5");
  EXPECT_EQ(value_of("  export  A=5   # five\r\n"), "5");
  EXPECT_EQ(value_of("A=5#no"), "5#no");
  EXPECT_EQ(value_of("A=\"a b\" # c"), "a b");
  EXPECT_EQ(value_of("A='a $USER \"b\"'"), "a $USER \"b\"");
  EXPECT_EQ(value_of("A=\"say \\\"$USER\\\" \\n\""), "say \"u\" \\n");
  EXPECT_EQ(value_of("A=a\\ b'c d'\"e\""), "a bc de");
  EXPECT_EQ(value_of("A="), "");
  EXPECT_EQ(value_of("# A=5\n\n   \n"), "(none)");
  EXPECT_EQ(value_of("\xef\xbb\xbf"
                     "A=1"),
            "1");
  EXPECT_EQ(value_of("export A=1 \\\n  B=2"), "2");
  EXPECT_EQ(parse("export A=1 B='x y'; C=3").size(), 3u);
  EXPECT_EQ(value_of("A=1; export B=2 ; export C"), "2");
  EXPECT_EQ(parse("A=1\n\nB=2\n")[1].line, 3u);
}

TEST(EnvFile, FillsInVariables) {
  EXPECT_EQ(value_of("A=$PWD/out"), "/home/u/run/out");
  EXPECT_EQ(value_of("A=${PWD}out"), "/home/u/runout");
  EXPECT_EQ(value_of("N=x\nA=\"${N}_$N\""), "x_x");
  EXPECT_EQ(value_of("USER=v\nA=$USER"), "v");  // the file's own value overrides the environment
  EXPECT_EQ(value_of("A=${MISSING:-word}"), "word");
  EXPECT_EQ(value_of("A=${USER:-word}"), "u");
  EXPECT_EQ(value_of("A=~/data"), "/home/u/data");
  EXPECT_EQ(value_of("A='~/data'"), "~/data");
  EXPECT_EQ(value_of("A=5$"), "5$");
}

TEST(EnvFile, NothingIsExecutedAndWhatWouldHaveToBeIsUnknown) {
  EXPECT_EQ(value_of("A=$(touch /tmp/x)"), "?$(touch /tmp/x) would have to be executed");
  EXPECT_EQ(value_of("A=`date`"), "?`date` would have to be executed");
  EXPECT_EQ(value_of("A=\"x $(echo $(date)) y\""), "?$(echo $(date)) would have to be executed");
  EXPECT_EQ(value_of("A=$(date)\nB=$A"), "?$(date) would have to be executed");
  EXPECT_EQ(value_of("A=$MISSING"), "?$MISSING is set neither earlier in the file nor in the environment");
  EXPECT_EQ(value_of("A=$1"), "?$1 is known to a shell only");
  EXPECT_EQ(value_of("A=${USER%x}"), "?${USER%x} is known to a shell only");
  EXPECT_EQ(value_of("A=(1 2)"), "?'(' has a meaning to the shell; quote or remove it");
  EXPECT_EQ(parse("A=1&B=2")[0].unknown, "'&' has a meaning to the shell; quote or remove it");
  EXPECT_EQ(value_of("A=1>2"), "?'< or >' has a meaning to the shell; quote or remove it");
}

TEST(EnvFile, WhatIsNoAssignmentIsRefusedByItsLine) {
  EXPECT_EQ(refusal_of("A=1\nsource ./secret.sh --token=hunter2\n"),
            "env_vars.sh:2: expected export NAME=value, found 'source'; such files are read, never executed");
  EXPECT_EQ(refusal_of("export 5=1"),
            "env_vars.sh:1: expected export NAME=value, found '5'; such files are read, never executed");
  EXPECT_EQ(refusal_of("A = 1").substr(0, 50), "env_vars.sh:1: expected export NAME=value, found '");
  EXPECT_EQ(refusal_of("A='x\nB=2'"), "env_vars.sh:1: the quote ' that opens here is not closed on the same line");
  EXPECT_EQ(refusal_of("A=\"x"), "env_vars.sh:1: the quote \" that opens here is not closed on the same line");
  EXPECT_EQ(refusal_of("A=${X"), "env_vars.sh:1: the { that opens here is not closed on the same line");
  EXPECT_EQ(refusal_of("A=$(x"), "env_vars.sh:1: the ( that opens here is not closed on the same line");
  EXPECT_EQ(refusal_of("A=1 && rm -r x").substr(0, 53), "env_vars.sh:1: expected export NAME=value, found 'rm'");
  EXPECT_EQ(refusal_of("A=1|2").substr(0, 52), "env_vars.sh:1: expected export NAME=value, found '2'");
  EXPECT_EQ(refusal_of(std::string("A=1\0", 4)), "env_vars.sh:1: expected text, found a NUL byte");
  EXPECT_EQ(refusal_of("export A"), "accepted");
}

TEST(EnvFile, AValueThatGrowsWithEachLineIsRefused) {
  std::string text = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 40; ++i) text += "A=$A$A\n";
  EXPECT_EQ(refusal_of(text), "env_vars.sh:14: A: a value has more than 65536 bytes");
}

class EnvFileSettings : public LoadTest {};

TEST_F(EnvFileSettings, EveryNameOfTheContractIsASetting) {
  const std::string path = file("env_vars.sh", R"(# a run
export EXPERIMENT_NAME="bloom_zero2"   # for reports
export LOG_DIR=$PWD/log
export MODEL_NAME="bigscience/bloom-560m"
export OUTPUT_DIR=${LOG_DIR}/out
export MAX_LENGTH=384
export TRAIN_SIZE=500
export EVAL_SIZE=50
export NUM_EPOCHS=2
export BATCH_SIZE=3
export LEARNING_RATE=1e-5
export WEIGHT_DECAY=0.1
export GRAD_ACC=5
export FP16=True
export BF16=false
export WANDB_API_KEY=hunter2
export CONDA_ENV_PATH=/opt/conda
)");
  environment_ = {{"PWD", "/run"}};
  const LoadedTrainSettings loaded = load_as_is({"bloom-qa", "--train_file=t.json", "--env_file", path});
  const TrainSettings& s = loaded.settings;
  EXPECT_EQ(s.reports.run_name, "bloom_zero2");
  EXPECT_EQ(s.output.log_dir, "/run/log");
  EXPECT_EQ(s.model.name_or_path, "bigscience/bloom-560m");
  EXPECT_EQ(s.output.output_dir, "/run/log/out");
  EXPECT_EQ(s.data.max_length, 384);
  EXPECT_EQ(s.data.max_train_samples, 500);
  EXPECT_EQ(s.data.max_eval_samples, 50);
  EXPECT_EQ(s.loop.num_epochs, 2);
  EXPECT_EQ(s.loop.batch_size, 3);
  EXPECT_EQ(s.loop.eval_batch_size, 3);
  EXPECT_EQ(s.optimizer.learning_rate, 1e-5);
  EXPECT_EQ(s.optimizer.numbers.weight_decay, 0.1);
  EXPECT_EQ(s.loop.accumulation, 5);
  EXPECT_EQ(s.precision.compute, NumberType::kFloat16);
  EXPECT_EQ(origin(loaded, "fp16"), "FP16 in env_vars.sh");
  EXPECT_EQ(notes(loaded),
            "no --validation_file: there will be no evaluation\n");  // no secret, no CONDA_, no complaint
}

TEST_F(EnvFileSettings, TheOtherNamesMeanTheSame) {
  const std::string path = file("env_vars.sh", "PER_DEVICE_BATCH_SIZE=3\nLR=1e-5\nGRAD_ACC_STEPS=5\n");
  const TrainSettings s = load({"--env_file", path}).settings;
  EXPECT_EQ(s.loop.batch_size, 3);
  EXPECT_EQ(s.optimizer.learning_rate, 1e-5);
  EXPECT_EQ(s.loop.accumulation, 5);
}

TEST_F(EnvFileSettings, GptsSixAreSettingsOfGptAndListedElsewhere) {
  const std::string path =
      file("env_vars.sh",
           "export VOCAB_SIZE=100\nexport HIDDEN_SIZE=64\nexport NUM_LAYERS=2\nexport NUM_HEADS=4\n"
           "export FF_DIM=128\nexport SEQ_LENGTH=32\n");
  const TrainSettings s =
      load_as_is({"gpt-qa", "--tokenizer_name=t", "--train_file=t.json", "--env_file", path}).settings;
  EXPECT_EQ(s.model.vocab_size, 100);
  EXPECT_EQ(s.model.hidden_size, 64);
  EXPECT_EQ(s.model.num_layers, 2);
  EXPECT_EQ(s.model.num_heads, 4);
  EXPECT_EQ(s.model.ff_dim, 128);
  EXPECT_EQ(s.model.seq_length, 32);
  EXPECT_EQ(notes(load({"--env_file", path})),
            "env_vars.sh: ignored, settings of gpt-qa: FF_DIM, HIDDEN_SIZE, NUM_HEADS, NUM_LAYERS, SEQ_LENGTH, "
            "VOCAB_SIZE\n");
}

TEST_F(EnvFileSettings, TwoNamesThatDifferAreRefused) {
  const std::string path = file("env_vars.sh", "GRAD_ACC=4\nGRAD_ACC_STEPS=8\n");
  EXPECT_EQ(refusal({"--env_file", path}),
            "--gradient_accumulation_steps is given twice with different values: 4 (GRAD_ACC in env_vars.sh) and 8 "
            "(GRAD_ACC_STEPS in env_vars.sh); give --gradient_accumulation_steps, or take one out");
  EXPECT_EQ(load({"--env_file", path, "--gradient_accumulation_steps=2"}).settings.loop.accumulation, 2);
  EXPECT_EQ(load({"--env_file", file("same.sh", "LR=1e-4\nLEARNING_RATE=0.0001\n")}).settings.optimizer.learning_rate,
            1e-4);
}

TEST_F(EnvFileSettings, OtherNamesAreListedOnceWithoutTheirValues) {
  const std::string path = file("env_vars.sh",
                                "export MY_TOKEN=hunter2\nexport MASTER_ADDR=$(hostname)\nexport MY_TOKEN=hunter3\n"
                                "export LEARING_RATE=3\nexport WANDB_API_KEY=$(cat key)\n");
  const LoadedTrainSettings loaded = load({"--env_file", path});
  EXPECT_EQ(notes(loaded),
            "env_vars.sh: ignored, not settings: LEARING_RATE (did you mean LEARNING_RATE?), MASTER_ADDR, MY_TOKEN\n");
}

TEST_F(EnvFileSettings, AnUnknownValueOfASettingIsRefused) {
  EXPECT_EQ(refusal({"--env_file", file("env_vars.sh", "\nexport NUM_EPOCHS=$(nproc)\n")}),
            "env_vars.sh:2: the value of NUM_EPOCHS is unknown: $(nproc) would have to be executed");
  EXPECT_EQ(refusal({"--env_file", file("env_vars.sh", "export NUM_EPOCHS=three\n")}),
            "--num_train_epochs=three (NUM_EPOCHS in env_vars.sh): expected a number from 0 to 1000000000");
  EXPECT_EQ(refusal({"--env_file=/nonexistent.sh"}).substr(0, 27), "cannot read /nonexistent.sh");
}

}  // namespace
}  // namespace tessera
