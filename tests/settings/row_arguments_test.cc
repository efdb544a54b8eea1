// The command lines of trl's sft script, of its dpo script and of run_clm: tools/references/row_arguments.py lists
// them.
#include <fmt/format.h>

#include <map>
#include <set>

#include "core/file.h"
#include "core/json.h"
#include "settings/declared.h"
#include "settings/test_load.h"

namespace tessera {
namespace {

// Without those of TrainingArguments, which hugging_face_test.cc goes through.
const Json& row_arguments() {
  static const Json file =
      read_json_file(std::string(TESSERA_SOURCE_FOLDER) + "/tests/data/train_settings/row_arguments.json");
  return file.at("arguments");
}

class RowArguments : public LoadTest {
 protected:
  LoadedTrainSettings load_job(const std::string& job, const Words& words) { return load_as_is(of_job(job, words)); }
  std::string refusal_of(const std::string& job, const Words& words) { return refusal_as_is(of_job(job, words)); }

 private:
  static Words of_job(const std::string& job, const Words& words) {
    Words all = {job, "--model_name_or_path=m"};
    // Whatever these say aloud must not meet --train_file.
    const auto names_rows = [](const std::string& word) { return word.starts_with("--dataset_name="); };
    if (std::ranges::none_of(words, names_rows)) all.push_back("--train_file=t.jsonl");
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
};

TEST_F(RowArguments, EveryOneIsKnownToSftAndLm) {
  ASSERT_GT(row_arguments().size(), 70U);
  for (const char* job : {"sft", "lm"}) {
    const LoadedTrainSettings loaded = load_job(job, {});
    for (const Json& argument : row_arguments()) {
      EXPECT_TRUE(loaded.schema->has(argument.at("name"))) << job << " " << argument.at("name");
    }
  }
}

TEST_F(RowArguments, NothingIsListedThatTheyDoNotHave) {
  std::set<std::string> names = {"use_auth_token",    "ref_model",
                                 "reference_free",    "rpo_alpha",
                                 "max_prompt_length", "max_completion_length"};  // of earlier versions
  for (const Json& argument : row_arguments()) names.insert(argument.at("name"));
  for (const JobTraits* job : job_traits()) {
    for (const ForeignArgument& argument : job->foreign) {
      EXPECT_TRUE(names.contains(argument.name)) << job->name << " " << argument.name;
    }
  }
}

TEST_F(RowArguments, SayingTheirDefaultsAloudIsAccepted) {
  const std::map<std::string, std::set<std::string>> programs = {
      {"sft", {"ScriptArguments", "DatasetMixtureConfig", "ModelConfig", "_BaseConfig", "SFTConfig"}},
      {"lm", {"ModelArguments", "DataTrainingArguments"}}};
  // There are no adapters to give sizes to.
  const std::set<std::string> refused = {"lora_r", "lora_alpha", "lora_dropout"};
  for (const auto& [job, classes] : programs) {
    for (const Json& argument : row_arguments()) {
      const std::string name = argument.at("name");
      const Json& preset = argument.at("default");
      if (preset.is_null() || refused.contains(name) || !classes.contains(argument.at("of"))) continue;
      const std::string text = preset.is_boolean()  ? (preset.get<bool>() ? "True" : "False")
                               : preset.is_string() ? preset.get<std::string>()
                                                    : preset.dump();
      EXPECT_EQ(refusal_of(job, {fmt::format("--{}={}", name, text)}), "accepted") << job << " " << name;
    }
  }
}

TEST_F(RowArguments, WhatIsNotBuiltIsRefusedByNameWithAdvice) {
  EXPECT_EQ(refusal_of("sft", {"--use_peft"}),
            "--use_peft=true (command line): all parameters are trained: there are no adapters");
  EXPECT_EQ(refusal_of("sft", {"--beta", "0.1"}),
            "--beta=0.1 (command line): preference training (DPO) is not built; to train on the preferred answers: sft "
            "with --columns completion=chosen beside a prompt, or messages=chosen");
  EXPECT_EQ(refusal_of("lm", {"--packing", "False"}), "--packing=false (command line): lm always packs");
  EXPECT_EQ(
      refusal_of("sft", {"--dtype=bfloat16"}),
      "--dtype=bfloat16 (command line): give --bf16 or --fp16: they compute in it and keep the weights in float32");
  for (const JobTraits* job : job_traits()) {
    for (const ForeignArgument& argument : job->foreign) {
      EXPECT_NE(std::string(argument.reason), "") << argument.name;
      if (!argument.is_refused()) continue;
      const bool is_yes = argument.form == ForeignArgument::Form::kBool && std::string(argument.neutral) == "true";
      const std::string value = argument.form == ForeignArgument::Form::kBool     ? (is_yes ? "False" : "True")
                                : argument.form == ForeignArgument::Form::kNumber ? "12345"
                                                                                  : "something";
      const std::string given = fmt::format("--{}={}", argument.name, value);
      EXPECT_TRUE(refusal_of(job->name, {given}).starts_with(fmt::format("--{}=", argument.name)))
          << job->name << " " << refusal_of(job->name, {given});
    }
  }
}

TEST_F(RowArguments, WhatMeansNothingHereIsAcceptedWithTheReason) {
  EXPECT_EQ(
      notes(load_job("sft", {"--dataset_num_proc=8", "--padding_free", "--attn_implementation=flash_attention_2"})),
      "accepted, but without effect here: --dataset_num_proc (all cores tokenise), --padding_free (nothing is padded), "
      "--attn_implementation (attention is always fused)\nno --validation_file: there will be no evaluation\n");
  const LoadedTrainSettings loaded = load_job("lm", {"--token=hunter2"});
  EXPECT_EQ(notes(loaded).find("hunter"), std::string::npos);
  EXPECT_EQ(loaded.schema->to_json().dump().find("hunter"), std::string::npos);
}

// trl reads the text from that column; here it is one more name of a column.
TEST_F(RowArguments, TheColumnOfPlainTextIsAColumn) {
  EXPECT_EQ(load_job("sft", {"--dataset_text_field=content"}).settings.rows.columns, "text=content");
  EXPECT_EQ(load_job("sft", {"--dataset_text_field=text"}).settings.rows.columns, "");
  EXPECT_EQ(load_job("lm", {"--dataset_text_field=content"}).settings.rows.text_column, "content");
}

}  // namespace
}  // namespace tessera
