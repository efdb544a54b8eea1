#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/file.h"
#include "core/json.h"
#include "settings/declared.h"
#include "settings/test_load.h"

namespace tessera {
namespace {

// Every argument of TrainingArguments in transformers 4, made by tools/references/training_arguments.py; then those
// that came with 5.
const Json& training_arguments() {
  static const Json all = [] {
    const std::string folder = std::string(TESSERA_SOURCE_FOLDER) + "/tests/data/train_settings/";
    Json arguments = read_json_file(folder + "training_arguments.json").at("arguments");
    std::set<std::string> names;
    for (const Json& argument : arguments) names.insert(argument.at("name"));
    const Json newer = read_json_file(folder + "training_arguments_5.json");
    for (const Json& argument : newer.at("arguments")) {
      if (!names.contains(argument.at("name"))) arguments.push_back(argument);
    }
    return arguments;
  }();
  return all;
}

const ForeignArgument* foreign(const std::string& name) {
  const auto& all = foreign_arguments();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return name == each.name; });
  return found == all.end() ? nullptr : &*found;
}

// Arguments whose default is ours and not transformers', and why.
const std::map<std::string, std::string> kOurDefaults = {
    {"output_dir", "the workshops' folder"},
    {"eval_strategy", "the workshops evaluate each epoch"},
    {"save_strategy", "the workshops save each epoch"},
    {"per_device_train_batch_size", "the ZeRO workshop's"},
    {"per_device_eval_batch_size", "the ZeRO workshop's"},
    {"gradient_accumulation_steps", "the workshops'"},
    {"weight_decay", "the workshops'"},
    {"report_to", "not all that happens to be installed"},
};

class HuggingFace : public LoadTest {};

TEST_F(HuggingFace, EveryTrainingArgumentIsSupportedOrAcceptedOrRefusedWithAReason) {
  ASSERT_GT(training_arguments().size(), 140u);
  const LoadedTrainSettings loaded = load({});
  std::set<std::string> names;
  int num_supported = 0;
  for (const Json& argument : training_arguments()) {
    const std::string name = argument.at("name");
    names.insert(name);
    ASSERT_NO_THROW(loaded.schema->at(name)) << name << " is not known";
    const ForeignArgument* other = foreign(name);
    num_supported += other == nullptr;
    if (other != nullptr) {
      EXPECT_NE(std::string(other->reason), "") << name;
    }
  }
  // And nothing is listed that transformers does not have.
  for (const ForeignArgument& argument : foreign_arguments())
    EXPECT_TRUE(names.contains(argument.name)) << argument.name;
  EXPECT_EQ(num_supported + foreign_arguments().size(), training_arguments().size());
  EXPECT_GE(num_supported, 50);
}

TEST_F(HuggingFace, DefaultsAreTransformersOwnUnlessListed) {
  const LoadedTrainSettings loaded = load({});
  for (const Json& argument : training_arguments()) {
    const std::string name = argument.at("name");
    const Json& preset = argument.at("default");
    if (foreign(name) != nullptr || preset.is_null()) continue;
    const Setting& setting = loaded.schema->at(name);
    const std::string text = preset.is_string() ? preset.get<std::string>() : preset.dump();
    const bool is_equal = setting.text().empty() ? text == "" : setting.parse(text) == setting.parse(setting.text());
    EXPECT_EQ(is_equal, !kOurDefaults.contains(name)) << name << ": " << setting.text() << " for " << text;
  }
}

TEST_F(HuggingFace, SayingTransformersDefaultsAloudIsAlwaysAccepted) {
  for (const Json& argument : training_arguments()) {
    const std::string name = argument.at("name");
    const Json& preset = argument.at("default");
    if (preset.is_null() || name == "do_train")
      continue;  // false is refused: `tessera train` is the wrong command for it
    const std::string text = preset.is_boolean()  ? (preset.get<bool>() ? "True" : "False")
                             : preset.is_string() ? preset.get<std::string>()
                                                  : preset.dump();
    EXPECT_EQ(refusal({"--" + name + "=" + text}), "accepted") << name;
  }
}

TEST_F(HuggingFace, WhatHasNoEffectIsAcceptedWithOneLineThatSaysWhy) {
  const LoadedTrainSettings loaded =
      load({"--local_rank=0", "--ddp_find_unused_parameters=False", "--do_train", "--remove_unused_columns"});
  EXPECT_EQ(notes(loaded),
            "accepted, but without effect here: --local_rank (the launcher's variables set the rank), "
            "--remove_unused_columns (only what the job needs is read), --ddp_find_unused_parameters (unused "
            "parameters are always found)\n");
  EXPECT_EQ(notes(load({})), "");
}

TEST_F(HuggingFace, WhatThereIsNotIsRefusedWithAdvice) {
  EXPECT_EQ(refusal({"--torch_compile"}),
            "--torch_compile=true (command line): kernels are compiled ahead of time; leave it out");
  EXPECT_EQ(refusal({"--do_train", "False"}),
            "--do_train=false (command line): `tessera train` trains; `tessera evaluate` works on the model's folder");
  EXPECT_EQ(refusal({"--label_smoothing_factor=0.1"}),
            "--label_smoothing_factor=0.1 (command line): labels are not smoothed");
  EXPECT_EQ(refusal({"--label_smoothing_factor=0.0"}), "accepted");
  EXPECT_EQ(refusal({"--ddp_timeout=7200"}), "--ddp_timeout=7200 (command line): give --comm_timeout, for example 30m");
  EXPECT_EQ(refusal({"--half_precision_backend=apex"}),
            "--half_precision_backend=apex (command line): there is no Apex; leave it out");
  EXPECT_EQ(refusal({"--half_precision_backend=cuda_amp"}), "accepted");
  for (const ForeignArgument& argument : foreign_arguments()) {
    if (!argument.is_refused()) continue;
    const bool is_yes = argument.form == ForeignArgument::Form::kBool && std::string(argument.neutral) == "true";
    const std::string value = argument.form == ForeignArgument::Form::kBool     ? (is_yes ? "False" : "True")
                              : argument.form == ForeignArgument::Form::kNumber ? "12345"
                                                                                : "something";
    EXPECT_EQ(refusal({fmt::format("--{}={}", argument.name, value)}).substr(0, std::string(argument.name).size() + 3),
              fmt::format("--{}=", argument.name));
  }
}

TEST_F(HuggingFace, TokensAreInNoNoteAndNoPrintOut) {
  const LoadedTrainSettings loaded = load({"--hub_token=hunter2", "--push_to_hub_token", "hunter3"});
  EXPECT_EQ(notes(loaded).find("hunter"), std::string::npos);
  EXPECT_EQ(loaded.schema->config_text().find("hunter"), std::string::npos);
  EXPECT_EQ(loaded.schema->to_json().dump().find("hunter"), std::string::npos);
}

TEST_F(HuggingFace, WarmUpsOfTransformers5MayBeFractions) {
  EXPECT_EQ(load({"--warmup_steps=0.1"}).settings.schedule.warmup_ratio, 0.1);
  EXPECT_EQ(load({"--warmup_steps=0.1"}).settings.schedule.warmup_steps, 0);
  EXPECT_EQ(load({"--warmup_steps=100"}).settings.schedule.warmup_steps, 100);
  EXPECT_EQ(refusal({"--warmup_steps=1.5"}),
            "--warmup_steps=1.5 (command line): expected a whole number, or a fraction below 1");
  EXPECT_EQ(refusal({"--warmup_steps=0.1", "--warmup_ratio=0.2"}),
            "--warmup_steps=0.1 (command line) and --warmup_ratio=0.2 (command line) exclude each other; give one");
}

TEST_F(HuggingFace, WordsOfOtherTrainersAreRefusedWithTheNameThatTheyHaveHere) {
  EXPECT_EQ(refusal({"--max_epochs=3"}), "--max_epochs=3 (command line): give --num_train_epochs");
  EXPECT_EQ(refusal({"--use_peft"}),
            "--use_peft=true (command line): all parameters are trained: there are no adapters");
  EXPECT_EQ(refusal({"--gpus=4"}),
            "--gpus=4 (command line): `tessera launch --nproc_per_node N train ...` starts ranks");
  EXPECT_EQ(refusal({"--gpus=1", "--mixed_precision=no", "--load_in_8bit=False", "--num_nodes=1"}), "accepted");
  EXPECT_EQ(notes(load({"--use_flash_attn"})),
            "accepted, but without effect here: --use_flash_attn (attention is always fused)\n");
  const LoadedTrainSettings loaded = load({});
  for (const ForeignArgument& word : other_words()) {
    EXPECT_TRUE(loaded.schema->at(word.name).is_hidden()) << word.name << " is a setting";
  }
}

// docs/from_hugging_face_trainer.md has a row for each of them, with the reason given here.
TEST_F(HuggingFace, ThePageHasEveryArgument) {
  const std::string page = read_file(std::string(TESSERA_SOURCE_FOLDER) + "/docs/from_hugging_face_trainer.md");
  for (const Json& argument : training_arguments()) {
    const std::string name = argument.at("name");
    EXPECT_NE(page.find("`--" + name + "`"), std::string::npos) << name;
  }
  const auto expect_row = [&](const ForeignArgument& argument) {
    const std::string neutral = argument.is_refused() ? argument.neutral : "";
    const std::string what = !argument.is_refused() ? "no effect" : neutral == "true" ? "`false` refused" : "refused";
    const std::string row = fmt::format("| `--{}` | {} | {} |", argument.name, what, argument.reason);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  };
  for (const ForeignArgument& argument : foreign_arguments()) expect_row(argument);
  for (const ForeignArgument& word : other_words()) expect_row(word);
}

}  // namespace
}  // namespace tessera
