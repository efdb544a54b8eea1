// The settings that every job has: files, distribution over ranks, model, data, evaluation, output. Those of training
// are in declared_training.cc.
#include "settings/declared.h"

#include "core/text.h"
#include "parallel/placement.h"
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

void declare_evaluation(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  const std::string group = "Evaluation";
  EvaluationSettings& evaluation = s.train.evaluation;
  schema.word("eval_strategy", &s.train.flow.evaluation, {"no", "steps", "epoch"})
      .alias("evaluation_strategy")
      .preset("epoch")
      .group(group)
      .help("when to evaluate; no if there is no data for it");
  schema.real("eval_steps", &s.eval_steps)
      .at_least(0)
      .group(group)
      .help("updates between evaluations, or below 1 a fraction of all updates; none: --logging_steps");
  schema.real("eval_delay", &s.train.flow.eval_delay)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("epochs (or updates) before the first evaluation");
  schema.boolean("eval_on_start", &evaluation.on_start).group(group).help("evaluate once before the first update");
  schema.boolean("do_eval", &s.do_eval)
      .group(group)
      .help("evaluate once after the last update, if --eval_strategy is no");
  schema.boolean("load_best_model_at_end", &evaluation.load_best_model_at_end)
      .group(group)
      .help("finish with the best checkpoint");
  schema.text("metric_for_best_model", &evaluation.metric_for_best_model)
      .group(group)
      .help(join(job.metrics, ", ") + "; with or without the prefix eval_");
  schema.boolean("greater_is_better", &s.greater_is_better)
      .group(group)
      .help("whether higher is better for that metric; unset: true unless it is a loss");
  schema.integer("early_stopping_patience", &evaluation.early_stopping_patience)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("stop after this many evaluations without improvement; 0: never");
  schema.real("early_stopping_threshold", &evaluation.early_stopping_threshold)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("how much better an evaluation must be to count as an improvement");
  job.declare_evaluation(schema, s);
}

void declare_output(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  const std::string group = "Output of the run";
  const JobPresets& presets = job.presets;
  OutputSettings& output = s.train.output;
  schema.text("output_dir", &output.output_dir)
      .environment("OUTPUT_DIR")
      .preset(presets.output_dir)
      .group(group)
      .help("folder of the model, its checkpoints and the run's record");
  schema.word("save_strategy", &s.train.flow.saving, kIntervalNames)
      .preset(presets.save_strategy)
      .group(group)
      .help("when to write a checkpoint; on_stop: only if a signal stops the run, to resume it later");
  schema.real("save_steps", &s.train.flow.save_steps)
      .preset("500")
      .at_least(0)
      .group(group)
      .help("updates between checkpoints, or below 1 a fraction of all updates");
  schema.integer("save_total_limit", &output.save_total_limit)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("keep this many checkpoints and remove older ones; 0: keep all");
  schema.boolean("save_only_model", &output.save_only_model)
      .group(group)
      .help("write checkpoints without the state that resuming needs");
  schema.word("save_mode", &output.save_mode, {"disabled", "async", "async_with_pinned_mem"})
      .preset("async")
      .group(group)
      .help(
          "async: write checkpoints while training goes on, from a copy in the GPU's free memory, else in the host's "
          "(async_with_pinned_mem: in page-locked memory); disabled: training waits");
  schema.word("save_errors", &output.save_errors, {"stop", "warn"})
      .preset("stop")
      .group(group)
      .help(
          "if a checkpoint cannot be written (full disk, lost rights): stop the run with the reason, or warn and go "
          "on");
  schema.duration("save_before_timeout", &output.save_before_timeout)
      .preset("0s")
      .group(group)
      .help("in a Slurm job: this long before its time limit, save and stop as at SIGUSR1 (status 138); 0s: do not");
  schema.boolean("save_hf_weights", &output.save_hf_weights)
      .group(group)
      .help("checkpoints also have model.safetensors, so that transformers loads them; written by rank 0 alone");
  schema.text("resume_from_checkpoint", &s.resume)
      .group(group)
      .help("a checkpoint's folder, or true or latest: the newest complete one of --output_dir");
  schema.word("logging_strategy", &s.train.flow.logging, {"no", "steps", "epoch"})
      .preset("steps")
      .group(group)
      .help("when to print a line with the loss");
  schema.real("logging_steps", &s.train.flow.logging_steps)
      .preset(presets.logging_steps)
      .at_least(0)
      .group(group)
      .help("updates between log lines, or below 1 a fraction of all updates");
  schema.boolean("logging_first_step", &s.train.flow.logging_first_step)
      .group(group)
      .help("also print a line after the first update");
  schema.text("logging_dir", &output.logging_dir)
      .group(group)
      .help("folder of TensorBoard's event files; none: a folder in runs/ of --output_dir");
  schema.text("log_dir", &output.log_dir)
      .environment("LOG_DIR")
      .group(group)
      .help("folder of the ranks' logs, with a subfolder per run and job id; none: log/ of --output_dir");
  schema.boolean("disable_tqdm", &s.disable_tqdm).group(group).help("show no progress bar");
  schema.boolean("monitor", &s.train.monitor.is_on)
      .preset("false")
      .group(group)
      .help(
          "write gpu_memory/ and cpu_memory/ in --output_dir, as nvidia-smi and psrecord do, and print what they say");
  schema.duration("monitor_period", &s.train.monitor.period)
      .preset("5s")
      .at_least(0.01)
      .group(group)
      .help("time between two samples of --monitor");
}

void declare_reports(Schema& schema, DeclaredSettings& s) {
  const std::string group = "Reports";
  ReportSettings& reports = s.train.reports;
  schema.text("report_to", &s.report_to)
      .preset("tensorboard")
      .list()
      .group(group)
      .help("tensorboard, wandb (offline), both separated by a comma, all, or none");
  schema.boolean("wall_clock_breakdown", &reports.wall_clock_breakdown)
      .group(group)
      .help("with each log line, print where the time of a step went on rank 0, the mean since the last one");
  schema.text("profile_steps", &s.profile_steps)
      .group(group)
      .help("trace these steps (20-22) on every rank: trace_rank-N.json.gz in --output_dir, for Perfetto");
  schema.text("run_name", &reports.run_name)
      .environment("EXPERIMENT_NAME")
      .group(group)
      .help("name of the run; none: --output_dir");
  schema.text("wandb_name", &reports.wandb_name)
      .environment("WANDB_NAME")
      .group(group)
      .help("name of the W&B run; none: --run_name");
  schema.text("wandb_mode", &reports.wandb_mode)
      .environment("WANDB_MODE")
      .preset("offline")
      .group(group)
      .help("offline: write files to upload later; disabled: write nothing");
  schema.text("wandb_dir", &reports.wandb_dir)
      .environment("WANDB_DIR")
      .group(group)
      .help("folder of W&B's files; none: --output_dir");
  schema.text("wandb_run_id", &reports.wandb_run_id)
      .environment("WANDB_RUN_ID")
      .group(group)
      .help("id of the W&B run; none: a random one");
  schema.text("wandb_project", &reports.wandb_project)
      .environment("WANDB_PROJECT")
      .group(group)
      .help("W&B project; none: huggingface");
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
  declare_evaluation(schema, job, s);
  declare_output(schema, job, s);
  declare_reports(schema, s);
  declare_foreign(schema, s);
}

}  // namespace tessera
