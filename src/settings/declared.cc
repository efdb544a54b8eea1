// Which settings there are for whom: files, model, data. How training goes is in declared_training.cc.
#include "settings/declared.h"

#include "settings/hugging_face.h"

namespace tessera {

namespace internal {

const JobPresets& presets_of(Job job) {
  // What the workshops' runs share; the batch of bloom-qa is that of its ZeRO runs, what nothing is known of is
  // transformers' default.
  static const JobPresets bloom = {.batch_size = "4",
                                   .eval_batch_size = "4",
                                   .accumulation = "4",
                                   .learning_rate = "5e-5",
                                   .weight_decay = "0.01",
                                   .max_grad_norm = "1",
                                   .optim = "adamw_torch_fused",
                                   .momentum = "0",
                                   .scheduler = "linear",
                                   .save_strategy = "epoch",
                                   .logging_steps = "500",
                                   .output_dir = "./bloom-qa-finetuned"};
  static const JobPresets gpt = [] {
    JobPresets presets = bloom;
    presets.batch_size = presets.eval_batch_size = "8";
    presets.accumulation = "1";
    presets.logging_steps = "10";
    presets.output_dir = "./gpt-qa";
    return presets;
  }();
  static const JobPresets resnet = {.batch_size = "512",
                                    .eval_batch_size = nullptr,  // that of training
                                    .accumulation = "1",
                                    .learning_rate = "0.001",
                                    .weight_decay = "1e-4",
                                    .max_grad_norm = "0",
                                    .optim = "sgd",
                                    .momentum = "0.9",
                                    .scheduler = "StepLR",
                                    .save_strategy = "no",
                                    .logging_steps = "500",
                                    .output_dir = "./resnet-tinyimagenet"};
  return job == Job::kBloomQa ? bloom : job == Job::kGptQa ? gpt : resnet;
}

void declare_files(Schema& schema, DeclaredSettings& s) {
  const std::string group = "Files with settings in other programs' words";
  schema.text("deepspeed", &s.deepspeed)
      .group(group)
      .help("DeepSpeed's ds_config.json: how the run is spread, and more");
  schema.text("fsdp", &s.fsdp)
      .group(group)
      .help("\"full_shard auto_wrap offload\": a strategy, and what goes with it; offload: parameters and optimizer");
  schema.text("fsdp_config", &s.fsdp_config).group(group).help("JSON file with the details of --fsdp");
  schema.text("env_file", &s.env_file)
      .group(group)
      .help("env_vars.sh: plain `export NAME=value` lines, read and never executed");
}

void declare_model(Schema& schema, Job job, DeclaredSettings& s) {
  const std::string group = "Model";
  ModelSettings& model = s.train.model;
  if (job != Job::kGptQa) {
    Setting& weights = schema.text("model_name_or_path", &model.name_or_path).group(group);
    weights.help(job == Job::kBloomQa ? "folder with config.json and weights, or a hub name in the local cache"
                                      : "weights to begin with; none: from scratch");
    if (job == Job::kBloomQa) weights.environment("MODEL_NAME");
  }
  if (job == Job::kBloomQa) {
    schema.text("config_name", &model.config_name).group(group).help("config.json of a model from scratch");
  }
  if (job == Job::kResnetTinyimagenet) return;
  Setting& tokenizer = schema.text("tokenizer_name", &model.tokenizer_name).group(group);
  tokenizer.help(job == Job::kGptQa ? "file or folder of the tokenizer" : "where the model's folder has none");
  if (job == Job::kBloomQa) return;
  tokenizer.alias("model_name_or_path").environment("MODEL_NAME");  // the tokenizer is all that gpt-qa takes of it
  const auto size = [&](const char* name, std::int64_t* value, const char* variable, const char* preset) -> Setting& {
    return schema.integer(name, value).environment(variable).preset(preset).range(1, 1'000'000'000).group(group);
  };
  size("vocab_size", &model.vocab_size, "VOCAB_SIZE", "50000").help("the tokenizer's own where that is larger");
  size("hidden_size", &model.hidden_size, "HIDDEN_SIZE", "2048").help("width of the model");
  size("num_layers", &model.num_layers, "NUM_LAYERS", "3").help("number of layers");
  size("num_heads", &model.num_heads, "NUM_HEADS", "16").help("attention heads of a layer");
  size("ff_dim", &model.ff_dim, "FF_DIM", "8192").help("width between the two linear parts of a layer");
  size("seq_length", &model.seq_length, "SEQ_LENGTH", "512").help("longest sequence of the model");
  schema.real("layers_per_rank", &s.layers_per_rank)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("weak scaling: num_layers is this times the ranks, 1.5 for 3, 6, 12; 0: as --num_layers says");
  schema.real("dropout", &model.dropout).preset("0.1").range(0, 0.99).group(group).help("share of values set to zero");
  schema.text("positions", &s.positions)
      .preset("none")
      .choices({"none", "learned"})
      .group(group)
      .help("whether the model is told where a token stands");
}

void declare_data(Schema& schema, Job job, DeclaredSettings& s) {
  const std::string group = "Data";
  DataSettings& data = s.train.data;
  if (job == Job::kResnetTinyimagenet) {
    schema.text("data_dir", &data.data_dir)
        .environment("DATA_DIR")
        .group(group)
        .help("folder with train/ and val/: TinyImageNet's own, or one folder a class");
    schema.integer("image_size", &data.image_size)
        .preset("224")
        .range(32, 4096)
        .group(group)
        .help("a side of what the model sees; validation cuts it out of 8/7 as much");
  } else {
    schema.text("train_file", &data.train_file).group(group).help("SQuAD questions, .json or .jsonl");
    schema.text("validation_file", &data.validation_file).group(group).help("the same, for evaluation");
    schema.integer("max_length", &data.max_length)
        .environment("MAX_LENGTH")
        .preset("512")
        .range(1, 1'000'000)
        .group(group)
        .help("tokens of a sequence; longer ones are cut");
    schema.text("label_mode", &data.label_mode)
        .preset("answer")
        .choices({"answer", "full", "padded", "separate"})
        .group(group)
        .help("which tokens count for the loss; padded and separate only reproduce the workshops");
    schema.integer("subset_seed", &s.subset_seed)
        .preset("-1")
        .at_least(-1)
        .group(group)
        .help("rows as datasets' shuffle(seed) gives them; -1: the first ones of the file");
  }
  schema.integer("max_train_samples", &data.max_train_samples)
      .environment("TRAIN_SIZE")
      .preset("0")
      .at_least(0)
      .group(group)
      .help("at most so many, over all ranks; 0: all");
  schema.integer("max_eval_samples", &data.max_eval_samples)
      .environment("EVAL_SIZE")
      .preset("0")
      .at_least(0)
      .group(group)
      .help("the same, for evaluation");
  schema.integer("samples_per_rank", &s.samples_per_rank)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("weak scaling: max_train_samples is this times the ranks; 0: as --max_train_samples says");
  schema.boolean("no_shuffle", &s.no_shuffle).group(group).help("rows in the order of the file");
  schema.boolean("dataloader_drop_last", &data.drop_last)
      .preset(job == Job::kResnetTinyimagenet ? "true" : "false")
      .group(group)
      .help("leave out a last batch that is not full");
  schema.integer("dataloader_num_workers", &data.num_workers)
      .alias("num_workers")
      .preset("0")
      .range(0, 4096)
      .group(group)
      .help("threads of each rank that prepare batches ahead; 0: the trainer's own");
  schema.integer("dataloader_prefetch_factor", &data.prefetch_factor)
      .preset("2")
      .range(1, 100'000)
      .group(group)
      .help("batches ahead for each of them");
}

}  // namespace internal

void declare(Schema& schema, Job job, DeclaredSettings& s) {
  s.train.job = job;
  internal::declare_files(schema, s);
  internal::declare_spread(schema, s);
  internal::declare_model(schema, job, s);
  internal::declare_data(schema, job, s);
  internal::declare_loop(schema, job, s);
  internal::declare_precision(schema, s);
  internal::declare_optimizer(schema, job, s);
  internal::declare_schedule(schema, job, s);
  internal::declare_evaluation(schema, job, s);
  internal::declare_output(schema, job, s);
  internal::declare_reports(schema, s);
  declare_foreign(schema, s);
}

}  // namespace tessera
