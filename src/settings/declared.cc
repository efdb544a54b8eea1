// The settings that every job has: files, distribution over ranks, model, data. Those of training are in
// declared_training.cc.
#include "settings/declared.h"

#include "parallel/placement.h"
#include "settings/hugging_face.h"
#include "settings/shared.h"

namespace tessera {
namespace {

void declare_files(Schema& schema, DeclaredSettings& s) {
  const std::string group = "Settings files of other programs";
  declare(schema, s.files, group);
  schema.text("env_file", &s.env_file)
      .group(group)
      .help("env_vars.sh: plain `export NAME=value` lines, read and never executed");
}

void declare_spread(Schema& schema, DeclaredSettings& s) {
  const std::string group = "How the run is distributed";
  declare(schema, s.train.spread, group);
  schema.text("gpu_memory", &s.gpu_memory)
      .group(group)
      .help(
          "with offload: memory that a rank may use on its GPU (6.5G); as many units as fit in stay there. auto: nine "
          "tenths of the GPU");
  WrapSettings& wrap = s.train.wrap;
  schema.word("wrap", &wrap.wrap, {"blocks", "class", "size", "none"})
      .preset("blocks")
      .group(group)
      .help(
          "what is gathered at once: the model's blocks, modules of --wrap_classes, modules of at least "
          "--min_num_params, or the whole model");
  schema.text("wrap_classes", &s.wrap_classes)
      .alias("fsdp_transformer_layer_cls_to_wrap")
      .alias("transformer_layer_cls_to_wrap")
      .group(group)
      .help("names of module classes, separated by commas: BloomBlock, TransformerEncoderLayer");
  schema.integer("min_num_params", &wrap.min_num_params)
      .alias("fsdp_min_num_params")
      .preset("0")
      .at_least(0)
      .group(group)
      .help("modules with at least this many parameters");
  schema.boolean("use_cpu", &s.train.use_cpu).alias("no_cuda").group(group).help("do not use GPUs");
}

void declare_data(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  const std::string group = "Data";
  DataSettings& data = s.train.data;
  job.declare_data(schema, s);
  schema.integer("max_train_samples", &data.max_train_samples)
      .environment("TRAIN_SIZE")
      .preset("0")
      .at_least(0)
      .group(group)
      .help("train on at most this many samples, over all ranks; 0: all");
  shared::max_eval_samples(schema, data, group);
  schema.integer("samples_per_rank", &s.samples_per_rank)
      .preset("0")
      .range(0, 1'000'000'000)  // times the most ranks there can be, it fits in 64 bits
      .group(group)
      .help("weak scaling: max_train_samples is this times the number of ranks; 0: use --max_train_samples");
  schema.boolean("no_shuffle", &s.no_shuffle).group(group).help("keep the rows in the order of the file");
  schema.boolean("dataloader_drop_last", &data.drop_last)
      .preset("false")
      .group(group)
      .help("drop the last batch of an epoch if it is not full");
  schema.integer("dataloader_num_workers", &data.num_workers)
      .alias("num_workers")
      .preset(job.presets.num_workers)
      .range(-1, 4096)
      .group(group)
      .help(
          "threads per rank that prepare batches ahead; 0: the training thread does; -1: where a GPU computes, one for "
          "each of the rank's cores, at most 16 and with 1 GiB of batches; else as 0");
  schema.integer("dataloader_prefetch_factor", &data.prefetch_factor)
      .preset("2")
      .range(1, 100'000)
      .group(group)
      .help("batches that each worker prepares ahead");
}

}  // namespace

void declare(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  s.train.job = job.name;
  declare_files(schema, s);
  declare_spread(schema, s);
  job.declare_model(schema, s);
  declare_data(schema, job, s);
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
