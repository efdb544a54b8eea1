#include "settings/shared.h"

#include "core/text.h"

namespace tessera::shared {

Setting& model_name_or_path(Schema& schema, ModelSettings& model, const std::string& group) {
  return schema.text("model_name_or_path", &model.name_or_path)
      .group(group)
      .help("folder with config.json and weights, or a hub name in the local cache");
}

Setting& tokenizer_name(Schema& schema, ModelSettings& model, const std::string& group) {
  return schema.text("tokenizer_name", &model.tokenizer_name)
      .group(group)
      .help("file or folder of the tokenizer, if the model's folder has none");
}

Setting& config_name(Schema& schema, std::string* value, const std::string& group) {
  return schema.text("config_name", value).group(group).help("config.json of a model from scratch");
}

Setting& validation_file(Schema& schema, DataSettings& data, const std::string& group) {
  return schema.text("validation_file", &data.validation_file)
      .group(group)
      .help("SQuAD questions with answers to evaluate on, .json or .jsonl");
}

Setting& max_eval_samples(Schema& schema, DataSettings& data, const std::string& group) {
  return schema.integer("max_eval_samples", &data.max_eval_samples)
      .environment("EVAL_SIZE")
      .preset("0")
      .at_least(0)
      .group(group)
      .help("evaluate on at most this many samples, over all ranks; 0: all");
}

Setting& max_length(Schema& schema, const std::string& name, std::int64_t* value, const std::string& group) {
  return schema.integer(name, value)
      .preset("512")
      .range(1, 1 << 24)
      .group(group)
      .help("tokens per sequence; longer ones are cut");
}

void text_rows(Schema& schema, DataSettings& data, std::int64_t* subset_seed,
               const std::vector<std::string>& label_modes, const std::string& group) {
  max_length(schema, "max_length", &data.max_length, group).environment("MAX_LENGTH");
  schema.text("label_mode", &data.label_mode)
      .preset("answer")
      .choices(label_modes)
      .group(group)
      .help("which tokens count for the loss; padded and separate only serve to reproduce two public workshops");
  schema.integer("subset_seed", subset_seed)
      .preset("-1")
      .at_least(-1)
      .group(group)
      .help("choose rows as datasets' shuffle(seed) does; -1: the first ones of the file");
}

Setting& image_size(Schema& schema, std::int64_t* value, const std::string& group) {
  return schema.integer("image_size", value)
      .preset("224")
      .range(32, 1 << 14)
      .group(group)
      .help("side length of the image that the model sees; validation crops it from one 8/7 as large");
}

Setting& train_batch_size(Schema& schema, std::int64_t* value, const std::string& group) {
  return schema.integer("per_device_train_batch_size", value)
      .alias("batch_size")
      .range(1, 1'000'000)
      .group(group)
      .help("samples per rank and micro-step");
}

Setting& eval_batch_size(Schema& schema, std::int64_t* value, const std::string& group) {
  return schema.integer("per_device_eval_batch_size", value)
      .range(1, 1'000'000)
      .group(group)
      .help("samples per rank and evaluation pass");
}

Setting& accumulation(Schema& schema, std::int64_t* value, const std::string& group) {
  return schema.integer("gradient_accumulation_steps", value)
      .preset("1")
      .range(1, 1'000'000)
      .group(group)
      .help("micro-steps per update");
}

Setting& total_batch_size(Schema& schema, std::int64_t* value, const std::string& group) {
  return schema.integer("train_batch_size", value)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("samples per update over all ranks; batch size and accumulation follow from it if not given; 0: unset");
}

Setting& gradient_checkpointing(Schema& schema, bool* value, const std::string& group) {
  return schema.boolean("gradient_checkpointing", value)
      .group(group)
      .help("recompute blocks in backward instead of keeping their activations");
}

void half_types(Schema& schema, bool* fp16, bool* bf16, const std::string& group) {
  schema.boolean("fp16", fp16).environment("FP16").group(group).help("compute in float16, with a loss scale");
  schema.boolean("bf16", bf16).environment("BF16").group(group).help("compute in bfloat16");
}

Setting& optim(Schema& schema, std::string* value, const std::string& group) {
  std::vector<std::string> notes;
  for (const OptimizerKind* each : optimizers()) {
    if (!each->help.empty()) notes.push_back(each->help);
  }
  return schema.text("optim", value)
      .preset(optimizers().front()->words.front())
      .choices(optimizer_words())
      .meaning([](const std::string& word) { return optimizer_of(word).name; })
      .group(group)
      .help(join(notes, "; "));
}

Setting& momentum(Schema& schema, double* value, const std::string& group) {
  return schema.real("momentum", value).preset("0").range(0, 1).group(group).help("momentum of sgd");
}

Setting& max_new_tokens(Schema& schema, std::int64_t* value, const std::string& group) {
  return schema.integer("max_new_tokens", value)
      .preset("50")
      .range(1, 1'000'000)
      .group(group)
      .help("generate at most this many tokens per answer");
}

void generation(Schema& schema, EvaluationSettings& evaluation, const std::string& group) {
  schema.boolean("predict_with_generate", &evaluation.generates)
      .preset("true")
      .group(group)
      .help("report exact match and F1 of the model's own answers, by greedy generation");
  max_new_tokens(schema, &evaluation.max_new_tokens, group);
}

Setting& seed(Schema& schema, std::int64_t* value, const std::string& group) {
  return schema.integer("seed", value)
      .preset("42")
      .range(0, 4294967295.0)
      .group(group)
      .help("seed of every random number: weights, dropout, data order");
}

Setting& as_json(Schema& schema, bool* value) {
  return schema.boolean("json", value).preset("false").group("Output").help("print one JSON object");
}

}  // namespace tessera::shared
