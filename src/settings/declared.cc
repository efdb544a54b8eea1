// The settings that every job has.
#include "settings/declared.h"

#include <fmt/format.h>

#include "core/text.h"
#include "parallel/placement.h"
#include "settings/shared.h"

namespace tessera {
namespace {

void declare_files(Schema& schema, DeclaredSettings& s) {
  schema.group("Settings files of other programs");
  declare(schema, s.files);
  schema.text("env_file", &s.env_file, "env_vars.sh: plain `export NAME=value` lines, read and never executed");
}

void declare_spread(Schema& schema, DeclaredSettings& s) {
  schema.group("How the run is distributed");
  declare(schema, s.train.spread);
  schema.text(
      "gpu_memory", &s.gpu_memory,
      "with offload: memory that a rank may use on its GPU (6.5G); as many units as fit in stay there. auto: nine "
      "tenths of the GPU");
  WrapSettings& wrap = s.train.wrap;
  schema.word("wrap", &wrap.wrap, {"blocks", "class", "size", "none"},
              "what is gathered at once: the model's blocks, modules of --wrap_classes, modules of at least "
              "--min_num_params, or the whole model",
              {.preset = "blocks"});
  schema.text("wrap_classes", &s.wrap_classes,
              "names of module classes, separated by commas: LlamaDecoderLayer, BloomBlock",
              {.aliases = {"fsdp_transformer_layer_cls_to_wrap", "transformer_layer_cls_to_wrap"}});
  schema.integer("min_num_params", &wrap.min_num_params, "modules with at least this many parameters",
                 {.preset = "0", .at_least = 0, .aliases = {"fsdp_min_num_params"}});
  schema.boolean("use_cpu", &s.train.use_cpu, "do not use GPUs", {.aliases = {"no_cuda"}});
}

void declare_data(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  DataSettings& data = s.train.data;
  schema.group("Data");
  job.declare_data(schema, s);
  schema.integer("max_train_samples", &data.max_train_samples,
                 "train on at most this many samples, over all ranks; 0: all",
                 {.preset = "0", .at_least = 0, .environment = {"TRAIN_SIZE"}});
  shared::max_eval_samples(schema, data);
  // Times the most ranks there can be, the highest fits in 64 bits.
  schema.integer("samples_per_rank", &s.samples_per_rank,
                 "weak scaling: max_train_samples is this times the number of ranks; 0: use --max_train_samples",
                 {.preset = "0", .at_least = 0, .at_most = 1'000'000'000});
  schema.boolean("no_shuffle", &s.no_shuffle, "keep the rows in the order of the file");
  schema.boolean("dataloader_drop_last", &data.drop_last, "drop the last batch of an epoch if it is not full");
  schema.integer(
      "dataloader_num_workers", &data.num_workers,
      "threads per rank that prepare batches ahead; 0: the training thread does; -1: where a GPU computes, one for "
      "each of the rank's cores, at most 16 and with 1 GiB of batches; else as 0",
      {.preset = job.presets.num_workers, .at_least = -1, .at_most = 4096, .aliases = {"num_workers"}});
  schema.integer("dataloader_prefetch_factor", &data.prefetch_factor, "batches that each worker prepares ahead",
                 {.preset = "2", .at_least = 1, .at_most = 100'000});
}

void declare_loop(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  const JobPresets& presets = job.presets;
  LoopSettings& loop = s.train.loop;
  schema.group("Steps and batches");
  shared::train_batch_size(schema, &loop.batch_size,
                           {.preset = presets.batch_size,
                            .aliases = {"per_gpu_train_batch_size"},
                            .environment = {"BATCH_SIZE", "PER_DEVICE_BATCH_SIZE"}});
  shared::eval_batch_size(schema, &loop.eval_batch_size,
                          {.preset = presets.eval_batch_size,
                           .aliases = {"per_gpu_eval_batch_size"},
                           .environment = {"BATCH_SIZE", "PER_DEVICE_BATCH_SIZE"}});
  shared::accumulation(schema, &loop.accumulation,
                       {.preset = presets.accumulation, .environment = {"GRAD_ACC", "GRAD_ACC_STEPS"}});
  shared::total_batch_size(schema, &s.train_batch_size);
  schema.word("merge_accumulation", &loop.merge_accumulation, {"auto", "on", "off"},
              "run the micro-steps of an update as one pass; auto: if memory allows", {.preset = "auto"});
  schema.real("num_train_epochs", &loop.num_epochs, "passes over the data",
              {.preset = "3", .at_least = 0, .at_most = 1e9, .aliases = {"epochs"}, .environment = {"NUM_EPOCHS"}});
  schema.integer("max_steps", &loop.max_steps, "number of updates, overrides --num_train_epochs; -1: use the epochs",
                 {.preset = "-1", .at_least = -1});
  shared::seeds(schema, &loop.seed, &s.data_seed);
  schema.boolean("full_determinism", &loop.full_determinism,
                 "give the same bits in every run on the same GPUs, at some cost; CPU ranks always do");
  shared::gradient_checkpointing(schema, &loop.gradient_checkpointing);
  schema.word("short_group", &loop.short_group, {"not_counted", "counted"},
              "whether an epoch's short last group of micro-steps counts towards the run's length; counted: as "
              "transformers from 4.52 on",
              {.preset = "not_counted"});
  schema.boolean("stop_on_nan", &loop.stop_on_nan, "end the run if the loss is not finite", {.preset = "true"});
  schema.boolean("dry_run", &s.train.dry_run,
                 "do everything up to the first step, then print the memory plan and exit");
  schema.boolean(
      "predict_speed", &s.train.predicts_speed,
      "with --dry_run: also try a few steps and print the samples/s to expect; text models are tried with some of "
      "their blocks");
}

void declare_precision(Schema& schema, DeclaredSettings& s) {
  LossScaleOptions& scale = s.train.precision.loss_scale;
  schema.group("Precision");
  shared::half_types(schema, &s.fp16, &s.bf16);
  schema.boolean("tf32", &s.tf32, "compute float32 products in TF32 on GPUs that have it; unset: libtorch's default");
  const std::vector<std::string> types = {"auto", "fp32", "bf16", "fp16"};  // after auto, in NumberType's order
  const auto type_in = [](std::optional<NumberType>& value) {
    return [&value](std::size_t place) {
      value = place == 0 ? std::nullopt : std::optional(static_cast<NumberType>(place - 1));
    };
  };
  schema.word("reduce_dtype", type_in(s.train.precision.reduce), types,
              "type in which gradients are reduced between ranks; auto: the compute type", {.preset = "auto"});
  schema.word("buffer_dtype", type_in(s.train.precision.buffers), types,
              "type of module buffers; the text models have none, and batch norm's statistics stay in fp32",
              {.preset = "auto"});
  schema.real("loss_scale", &s.loss_scale, "fixed loss scale of fp16; 0: dynamic", {.preset = "0", .at_least = 0});
  schema.integer("initial_scale_power", &s.initial_scale_power, "the dynamic scale starts at 2 to this power",
                 {.preset = "16", .at_least = 0, .at_most = 127});
  schema.integer("loss_scale_window", &scale.growth_interval, "steps without an overflow until the scale doubles",
                 {.preset = "2000", .at_least = 1});
  schema.integer("hysteresis", &scale.hysteresis, "overflows until the scale halves", {.preset = "1", .at_least = 1});
  schema.boolean("consecutive_hysteresis", &scale.consecutive_hysteresis, "count only overflows of consecutive steps");
  schema.real("min_loss_scale", &scale.minimum, "smallest loss scale", {.preset = "0", .at_least = 0});
}

void declare_optimizer(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  const JobPresets& presets = job.presets;
  OptimizerSettings& optimizer = s.train.optimizer;
  OptimizerNumbers& numbers = optimizer.numbers;
  schema.group("Optimizer");
  shared::optim(schema, &optimizer.optim, {.preset = presets.optim});
  schema.real(
      "learning_rate", &optimizer.learning_rate, "maximum learning rate of the schedule",
      {.preset = presets.learning_rate, .at_least = 0, .aliases = {"lr"}, .environment = {"LEARNING_RATE", "LR"}});
  schema.real("weight_decay", &numbers.weight_decay,
              job.decays_all ? "weight decay of all parameters" : "weight decay of all parameters but biases and norms",
              {.preset = presets.weight_decay, .at_least = 0, .environment = {"WEIGHT_DECAY"}});
  schema.real("adam_beta1", &numbers.beta1, "decay of the gradient's running mean",
              {.preset = "0.9", .at_least = 0, .at_most = 0.999999999});
  schema.real("adam_beta2", &numbers.beta2, "decay of the gradient's running mean square",
              {.preset = "0.999", .at_least = 0, .at_most = 0.999999999});
  schema.real("adam_epsilon", &numbers.epsilon, "added to the square root of the mean square",
              {.preset = "1e-8", .at_least = 0});
  shared::momentum(schema, &numbers.momentum, presets.momentum);
  schema.boolean("nesterov", &numbers.nesterov, "use Nesterov momentum with sgd");
  schema.real("max_grad_norm", &optimizer.max_grad_norm, "clip the gradient's norm to this; 0: no clipping",
              {.preset = presets.max_grad_norm, .at_least = 0});
}

void declare_schedule(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  ScheduleOptions& schedule = s.train.schedule;
  schema.group("Learning-rate schedule");
  schema.text("lr_scheduler_type", &schedule.kind,
              "transformers' names; Warmup...: DeepSpeed's; StepLR: torch's, by epoch, with --step_size and --gamma",
              {.preset = job.presets.scheduler, .choices = schedule_kinds()});
  schema.text("lr_scheduler_kwargs", &s.lr_scheduler_kwargs,
              "JSON with options of the type: num_cycles, power, lr_end, min_lr, min_lr_rate, timescale");
  schema.real("warmup_steps", &s.warmup_steps,
              "steps over which the rate rises to its maximum, or below 1 a fraction of all steps",
              {.preset = "0", .at_least = 0, .at_most = 1e12});
  schema.real("warmup_ratio", &schedule.warmup_ratio,
              "the same as a fraction of all steps; --warmup_steps overrides it",
              {.preset = "0", .at_least = 0, .at_most = 1});
  schema.word("warmup_type", &schedule.warmup_shape, {"log", "linear"}, "shape of the warm-up in DeepSpeed's schedules",
              {.preset = "log"});
  schema.real("warmup_min_lr", &schedule.warmup_min_lr, "learning rate at which DeepSpeed's schedules start",
              {.preset = "0", .at_least = 0});
  schema.integer("lr_total_steps", &schedule.total_steps, "steps until the rate has decayed; 0: the run's own number",
                 {.preset = "0", .at_least = 0});
  schema.integer("step_size", &schedule.step_size, "StepLR: epochs between two decays",
                 {.preset = "30", .at_least = 1});
  schema.real("gamma", &schedule.gamma, "StepLR: factor of each decay", {.preset = "0.1", .at_least = 0});
}

void declare_evaluation(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  EvaluationSettings& evaluation = s.train.evaluation;
  schema.group("Evaluation");
  schema.word("eval_strategy", &s.train.flow.evaluation, {"no", "steps", "epoch"},
              "when to evaluate; no if there is no data for it",
              {.preset = "epoch", .aliases = {"evaluation_strategy"}});
  schema.real("eval_steps", &s.eval_steps,
              "updates between evaluations, or below 1 a fraction of all updates; none: --logging_steps",
              {.at_least = 0});
  schema.real("eval_delay", &s.train.flow.eval_delay, "epochs (or updates) before the first evaluation",
              {.preset = "0", .at_least = 0});
  schema.boolean("eval_on_start", &evaluation.on_start, "evaluate once before the first update");
  schema.boolean("do_eval", &s.do_eval, "evaluate once after the last update, if --eval_strategy is no");
  schema.boolean("load_best_model_at_end", &evaluation.load_best_model_at_end, "finish with the best checkpoint");
  schema.text("metric_for_best_model", &evaluation.metric_for_best_model,
              join(job.metrics, ", ") + "; with or without the prefix eval_");
  schema.boolean("greater_is_better", &s.greater_is_better,
                 "whether higher is better for that metric; unset: true unless it is a loss");
  schema.integer("early_stopping_patience", &evaluation.early_stopping_patience,
                 "stop after this many evaluations without improvement; 0: never", {.preset = "0", .at_least = 0});
  schema.real("early_stopping_threshold", &evaluation.early_stopping_threshold,
              "how much better an evaluation must be to count as an improvement", {.preset = "0", .at_least = 0});
  job.declare_evaluation(schema, s);
}

void declare_output(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  const JobPresets& presets = job.presets;
  OutputSettings& output = s.train.output;
  schema.group("Output of the run");
  schema.text("output_dir", &output.output_dir, "folder of the model, its checkpoints and the run's record",
              {.preset = presets.output_dir, .environment = {"OUTPUT_DIR"}});
  schema.boolean("overwrite_output_dir", &output.overwrites,
                 "train anew in a folder that holds a finished model, and replace it; else such a run is refused, "
                 "unless it resumes");
  schema.word("save_strategy", &s.train.flow.saving, kIntervalNames,
              "when to write a checkpoint; on_stop: only if a signal stops the run, to resume it later",
              {.preset = presets.save_strategy});
  schema.real("save_steps", &s.train.flow.save_steps,
              "updates between checkpoints, or below 1 a fraction of all updates", {.preset = "500", .at_least = 0});
  schema.integer("save_total_limit", &output.save_total_limit,
                 "keep this many checkpoints and remove older ones; 0: keep all", {.preset = "0", .at_least = 0});
  schema.boolean("save_only_model", &output.save_only_model, "write checkpoints without the state that resuming needs");
  schema.word(
      "save_mode", &output.save_mode, {"disabled", "async", "async_with_pinned_mem"},
      "async: write checkpoints while training goes on, from a copy in the GPU's free memory, else in the host's "
      "(async_with_pinned_mem: in page-locked memory); disabled: training waits",
      {.preset = "async"});
  schema.word(
      "save_errors", &output.save_errors, {"stop", "warn"},
      "if a checkpoint cannot be written (full disk, lost rights): stop the run with the reason, or warn and go "
      "on",
      {.preset = "stop"});
  schema.duration(
      "save_before_timeout", &output.save_before_timeout,
      "in a Slurm job: this long before its time limit, save and stop as at SIGUSR1 (status 138); 0s: do not",
      {.preset = "0s"});
  schema.boolean("save_hf_weights", &output.save_hf_weights,
                 "checkpoints also have model.safetensors, so that transformers loads them; written by rank 0 alone");
  schema.text("resume_from_checkpoint", &s.resume,
              "a checkpoint's folder, or true or latest: the newest complete one of --output_dir");
  schema.word("logging_strategy", &s.train.flow.logging, {"no", "steps", "epoch"}, "when to print a line with the loss",
              {.preset = "steps"});
  schema.real("logging_steps", &s.train.flow.logging_steps,
              std::string("updates between log lines, or below 1 a fraction of all updates") +
                  (presets.logging_steps == "500" ? "; unset, a run logs at least ten times" : ""),
              {.preset = presets.logging_steps, .at_least = 0});
  schema.boolean("logging_first_step", &s.train.flow.logging_first_step, "also print a line after the first update");
  schema.text("logging_dir", &output.logging_dir,
              "folder of TensorBoard's event files; none: a folder in runs/ of --output_dir");
  schema.text("log_dir", &output.log_dir,
              "folder of the ranks' logs, with a subfolder per run and job id; none: log/ of --output_dir",
              {.environment = {"LOG_DIR"}});
  schema.boolean("disable_tqdm", &s.disable_tqdm, "show no progress bar");
  schema.boolean(
      "monitor", &s.train.monitor.is_on,
      "write gpu_memory/ and cpu_memory/ in --output_dir, as nvidia-smi and psrecord do, and print what they say");
  schema.duration("monitor_period", &s.train.monitor.period, "time between two samples of --monitor",
                  {.preset = "5s", .at_least = 0.01});
}

void declare_reports(Schema& schema, DeclaredSettings& s) {
  ReportSettings& reports = s.train.reports;
  schema.group("Reports");
  schema.text("report_to", &s.report_to, "tensorboard, wandb (offline), both separated by a comma, all, or none",
              {.preset = "tensorboard", .is_list = true});
  schema.boolean("wall_clock_breakdown", &reports.wall_clock_breakdown,
                 "with each log line, print where the time of a step went on rank 0, the mean since the last one");
  schema.text("profile_steps", &s.profile_steps,
              "trace these steps (20-22) on every rank: trace_rank-N.json.gz in --output_dir, for Perfetto");
  schema.text("run_name", &reports.run_name, "name of the run; none: --output_dir",
              {.environment = {"EXPERIMENT_NAME"}});
  schema.text("wandb_name", &reports.wandb_name, "name of the W&B run; none: --run_name",
              {.environment = {"WANDB_NAME"}});
  schema.text("wandb_mode", &reports.wandb_mode, "offline: write files to upload later; disabled: write nothing",
              {.preset = "offline", .environment = {"WANDB_MODE"}});
  schema.text("wandb_dir", &reports.wandb_dir, "folder of W&B's files; none: --output_dir",
              {.environment = {"WANDB_DIR"}});
  schema.text("wandb_run_id", &reports.wandb_run_id, "id of the W&B run; none: a random one",
              {.environment = {"WANDB_RUN_ID"}});
  schema.text("wandb_project", &reports.wandb_project, "W&B project; none: huggingface",
              {.environment = {"WANDB_PROJECT"}});
}

// In the order in which they come to mind. A job has most of them.
void declare_most_used(Schema& schema, const JobTraits& job) {
  schema.most_used({"model_name_or_path",
                    "config_name",
                    "train_file",
                    "validation_file",
                    "dataset_name",
                    "data_dir",
                    "max_length",
                    "label_mode",
                    "packing",
                    "assistant_only_loss",
                    "output_dir",
                    "num_train_epochs",
                    "max_steps",
                    "learning_rate",
                    "per_device_train_batch_size",
                    "gradient_accumulation_steps",
                    "bf16",
                    "strategy",
                    "gradient_checkpointing",
                    "offload_optimizer",
                    "gpu_memory",
                    "eval_strategy",
                    "save_strategy",
                    "resume_from_checkpoint",
                    "logging_steps",
                    "report_to",
                    "monitor",
                    "deepspeed",
                    "dry_run"},
                   {fmt::format("tessera train {} {}", job.name, job.example),
                    fmt::format("tessera launch --nproc_per_node 2 train {} --strategy full_shard ...", job.name)});
}

}  // namespace

void declare(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  s.train.job = job.name;
  declare_most_used(schema, job);
  declare_files(schema, s);
  declare_spread(schema, s);
  schema.group("Model");
  job.declare_model(schema, s);
  declare_data(schema, job, s);
  declare_loop(schema, job, s);
  declare_precision(schema, s);
  declare_optimizer(schema, job, s);
  declare_schedule(schema, job, s);
  declare_evaluation(schema, job, s);
  declare_output(schema, job, s);
  declare_reports(schema, s);
  declare_foreign(schema, job);
}

}  // namespace tessera
