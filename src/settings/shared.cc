#include "settings/shared.h"

#include <utility>

#include "core/text.h"

namespace tessera::shared {

void model_name_or_path(Schema& schema, ModelSettings& model, SettingTraits more) {
  schema.text("model_name_or_path", &model.name_or_path,
              "folder with config.json and weights, or a hub name in the local cache", std::move(more));
}

void tokenizer_name(Schema& schema, ModelSettings& model, SettingTraits more) {
  schema.text("tokenizer_name", &model.tokenizer_name,
              "file or folder of the tokenizer, if the model's folder has none", std::move(more));
}

void validation_file(Schema& schema, DataSettings& data) {
  schema.text("validation_file", &data.validation_file, "SQuAD questions with answers to evaluate on, .json or .jsonl");
}

void max_eval_samples(Schema& schema, DataSettings& data) {
  schema.integer("max_eval_samples", &data.max_eval_samples,
                 "evaluate on at most this many samples, over all ranks; 0: all",
                 {.preset = "0", .at_least = 0, .environment = {"EVAL_SIZE"}});
}

void text_rows(Schema& schema, DataSettings& data, std::int64_t* subset_seed, std::vector<std::string> label_modes) {
  schema.integer("max_length", &data.max_length, "tokens per sequence; longer ones are cut",
                 {.preset = "512", .at_least = 1, .at_most = 1 << 24, .environment = {"MAX_LENGTH"}});
  schema.text("label_mode", &data.label_mode,
              "which tokens count for the loss; padded and separate only serve to reproduce two public workshops",
              {.preset = "answer", .choices = std::move(label_modes)});
  schema.integer("subset_seed", subset_seed,
                 "choose rows as datasets' shuffle(seed) does; -1: the first ones of the file",
                 {.preset = "-1", .at_least = -1});
}

void generation(Schema& schema, EvaluationSettings& evaluation) {
  schema.boolean("predict_with_generate", &evaluation.generates,
                 "report exact match and F1 of the model's own answers, by greedy generation", {.preset = "true"});
  schema.integer("max_new_tokens", &evaluation.max_new_tokens, "generate at most this many tokens per answer",
                 {.preset = "50", .at_least = 1, .at_most = 1'000'000});
}

void seeds(Schema& schema, std::int64_t* seed, std::int64_t* data_seed) {
  schema.integer("seed", seed, "seed of every random number: weights, dropout, data order",
                 {.preset = "42", .at_least = 0, .at_most = 4294967295.0});
  schema.integer("data_seed", data_seed, "seed of the data order; -1: --seed",
                 {.preset = "-1", .at_least = -1, .at_most = 4294967295.0});
}

void train_batch_size(Schema& schema, std::int64_t* value, SettingTraits more) {
  more.at_least = 1;
  more.at_most = 1'000'000;
  more.aliases.insert(more.aliases.begin(), "batch_size");
  schema.integer("per_device_train_batch_size", value, "samples per rank and micro-step", std::move(more));
}

void eval_batch_size(Schema& schema, std::int64_t* value, SettingTraits more) {
  more.at_least = 1;
  more.at_most = 1'000'000;
  const std::string otherwise = more.preset ? "" : "; none: as in training";
  schema.integer("per_device_eval_batch_size", value, "samples per rank and evaluation pass" + otherwise,
                 std::move(more));
}

void accumulation(Schema& schema, std::int64_t* value, SettingTraits more) {
  more.at_least = 1;
  more.at_most = 1'000'000;
  schema.integer("gradient_accumulation_steps", value, "micro-steps per update", std::move(more));
}

void total_batch_size(Schema& schema, std::int64_t* value) {
  schema.integer("train_batch_size", value,
                 "samples per update over all ranks; batch size and accumulation follow from it if not given; 0: unset",
                 {.preset = "0", .at_least = 0});
}

void gradient_checkpointing(Schema& schema, bool* value) {
  schema.boolean("gradient_checkpointing", value, "recompute blocks in backward instead of keeping their activations",
                 {.aliases = {"activation_checkpointing"}});
}

void half_types(Schema& schema, bool* fp16, bool* bf16) {
  schema.boolean("fp16", fp16, "compute in float16, with a loss scale", {.environment = {"FP16"}});
  schema.boolean("bf16", bf16, "compute in bfloat16", {.environment = {"BF16"}});
}

void optim(Schema& schema, std::string* value, SettingTraits more) {
  std::vector<std::string> notes;
  for (const OptimizerKind* each : optimizers()) {
    if (!each->help.empty()) notes.push_back(each->help);
  }
  if (!more.preset) more.preset = optimizers().front()->words.front();
  more.choices = optimizer_words();
  more.meaning = [](const std::string& word) { return optimizer_of(word).name; };
  schema.text("optim", value, join(notes, "; "), std::move(more));
}

void momentum(Schema& schema, double* value, const std::string& preset) {
  schema.real("momentum", value, "momentum of sgd", {.preset = preset, .at_least = 0, .at_most = 1});
}

}  // namespace tessera::shared
