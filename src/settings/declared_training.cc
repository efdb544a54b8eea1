// Settings of how training goes: spread, loop, precision, optimizer, schedule.
#include "settings/declared.h"

namespace tessera::internal {

void declare_spread(Schema& schema, DeclaredSettings& s) {
  const std::string group = "How the run is spread";
  SpreadSettings& spread = s.train.spread;
  schema.text("strategy", &s.strategy)
      .preset("auto")
      .choices({"auto", "single", "ddp", "zero0", "zero1", "zero2", "zero3", "full_shard", "shard_grad_op",
                "hybrid_shard", "no_shard"})
      .group(group)
      .help("who keeps which part of the model's state; auto: single for one rank, ddp for several");
  schema.boolean("offload_optimizer", &spread.offload_optimizer)
      .group(group)
      .help("master values, moments and reduced gradients live in host memory and are updated there");
  schema.boolean("offload_param", &spread.offload_param)
      .group(group)
      .help("so do the parameters between uses; where the strategy splits them");
  schema.boolean("pin_memory", &spread.pin_memory).group(group).help("pinned host memory for what is offloaded");
  schema.boolean("delayed_update", &spread.delayed_update)
      .group(group)
      .help(
          "an offloaded update runs beside the next step, which uses the values before it: faster, other losses, also "
          "by when evaluations and checkpoints come");
  schema.boolean("forward_prefetch", &spread.forward_prefetch)
      .preset("true")
      .group(group)
      .help("gather the next block while one computes forward");
  schema.text("backward_prefetch", &s.backward_prefetch)
      .preset("backward_pre")
      .choices({"backward_pre", "backward_post", "none"})
      .group(group)
      .help("the same backward: before or after a block has computed");
  schema.boolean("sync_module_states", &spread.sync_module_states)
      .preset("true")
      .group(group)
      .help("every rank begins with rank 0's values");
  schema.text("wrap", &s.wrap)
      .preset("blocks")
      .choices({"blocks", "class", "size", "none"})
      .group(group)
      .help("what is gathered at a time: the model's blocks, modules of --wrap_classes, of --min_num_params, or all");
  schema.text("wrap_classes", &s.wrap_classes)
      .alias("fsdp_transformer_layer_cls_to_wrap")
      .alias("transformer_layer_cls_to_wrap")
      .group(group)
      .help("names of module classes, separated by commas: BloomBlock, TransformerEncoderLayer");
  schema.integer("min_num_params", &spread.wrap_min_num_params)
      .alias("fsdp_min_num_params")
      .preset("0")
      .at_least(0)
      .group(group)
      .help("modules of at least so many parameters");
  schema.boolean("use_cpu", &spread.use_cpu).alias("no_cuda").group(group).help("leave GPUs alone");
}

void declare_loop(Schema& schema, Job job, DeclaredSettings& s) {
  const std::string group = "Steps and batches";
  const JobPresets& presets = presets_of(job);
  LoopSettings& loop = s.train.loop;
  schema.integer("per_device_train_batch_size", &loop.batch_size)
      .alias("batch_size")
      .alias("per_gpu_train_batch_size")
      .environment("BATCH_SIZE")
      .environment("PER_DEVICE_BATCH_SIZE")
      .preset(presets.batch_size)
      .range(1, 1'000'000)
      .group(group)
      .help("samples of a rank in one micro-step");
  Setting& eval = schema.integer("per_device_eval_batch_size", &loop.eval_batch_size)
                      .alias("per_gpu_eval_batch_size")
                      .environment("BATCH_SIZE")
                      .environment("PER_DEVICE_BATCH_SIZE")
                      .range(1, 1'000'000)
                      .group(group);
  eval.help(presets.eval_batch_size != nullptr ? "the same in evaluation" : "the same in evaluation; none: as many");
  if (presets.eval_batch_size != nullptr) eval.preset(presets.eval_batch_size);
  schema.integer("gradient_accumulation_steps", &loop.accumulation)
      .environment("GRAD_ACC")
      .environment("GRAD_ACC_STEPS")
      .preset(presets.accumulation)
      .range(1, 1'000'000)
      .group(group)
      .help("micro-steps of an update");
  schema.integer("train_batch_size", &s.train_batch_size)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("samples of an update over all ranks; what is not given of batch and accumulation follows; 0: not given");
  schema.text("merge_accumulation", &s.merge_accumulation)
      .preset("auto")
      .choices({"auto", "on", "off"})
      .group(group)
      .help("the micro-steps of an update in one pass; auto: where memory allows");
  schema.real("num_train_epochs", &loop.num_epochs)
      .alias("epochs")
      .environment("NUM_EPOCHS")
      .preset("3")
      .range(0, 1e9)
      .group(group)
      .help("passes over the data");
  schema.integer("max_steps", &loop.max_steps)
      .preset("-1")
      .at_least(-1)
      .group(group)
      .help("updates, whatever --num_train_epochs says; -1: by the epochs");
  schema.integer("seed", &loop.seed).preset("42").range(0, 4294967295.0).group(group).help("of everything drawn");
  schema.integer("data_seed", &s.data_seed)
      .preset("-1")
      .range(-1, 4294967295.0)
      .group(group)
      .help("of the rows' order; -1: --seed");
  schema.boolean("full_determinism", &loop.full_determinism)
      .group(group)
      .help("the same bits each time on the same GPUs, too, at some cost; CPU ranks give them anyway");
  schema.boolean("gradient_checkpointing", &loop.gradient_checkpointing)
      .group(group)
      .help("compute blocks again in backward instead of keeping what they need");
  schema.text("short_group", &s.short_group)
      .preset("not_counted")
      .choices({"not_counted", "counted"})
      .group(group)
      .help("a short last group of micro-steps and the length of the run; counted: as transformers from 4.52 on");
  schema.boolean("stop_on_nan", &loop.stop_on_nan)
      .preset("true")
      .group(group)
      .help("end the run at a loss that is no number");
  schema.boolean("dry_run", &s.train.dry_run)
      .group(group)
      .help("everything up to the first step, then print the plan and end");
}

void declare_precision(Schema& schema, DeclaredSettings& s) {
  const std::string group = "Precision";
  LossScaleOptions& scale = s.train.precision.loss_scale;
  schema.boolean("fp16", &s.fp16).environment("FP16").group(group).help("compute in float16, with a loss scale");
  schema.boolean("bf16", &s.bf16).environment("BF16").group(group).help("compute in bfloat16");
  schema.boolean("tf32", &s.tf32)
      .group(group)
      .help("float32 products by TF32 on GPUs that have it; unset: libtorch's choice");
  const std::vector<std::string> types = {"auto", "fp32", "fp16", "bf16"};
  schema.text("reduce_dtype", &s.reduce_dtype)
      .preset("auto")
      .choices(types)
      .group(group)
      .help("type in which gradients travel; auto: the compute type");
  schema.text("buffer_dtype", &s.buffer_dtype)
      .preset("auto")
      .choices(types)
      .group(group)
      .help("type of module buffers; the text models have none, batch norm's statistics stay in fp32");
  schema.real("loss_scale", &s.loss_scale)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("of fp16; 0: dynamic, by the next");
  schema.integer("initial_scale_power", &s.initial_scale_power)
      .preset("16")
      .range(0, 127)
      .group(group)
      .help("the dynamic scale begins at 2 to this power");
  schema.integer("loss_scale_window", &scale.growth_interval)
      .preset("2000")
      .at_least(1)
      .group(group)
      .help("doubled after so many steps without an overflow");
  schema.integer("hysteresis", &scale.hysteresis)
      .preset("1")
      .at_least(1)
      .group(group)
      .help("halved at this many overflows");
  schema.boolean("consecutive_hysteresis", &scale.consecutive_hysteresis)
      .group(group)
      .help("only overflows of one step after another count for it");
  schema.real("min_loss_scale", &scale.minimum).preset("0").at_least(0).group(group).help("not halved below it");
}

void declare_optimizer(Schema& schema, Job job, DeclaredSettings& s) {
  const std::string group = "Optimizer";
  const JobPresets& presets = presets_of(job);
  OptimizerSettings& optimizer = s.train.optimizer;
  schema.text("optim", &s.optim)
      .preset(presets.optim)
      .choices({"adamw_torch_fused", "adamw_torch", "adamw_apex_fused", "adamw_hf", "adam", "sgd"})
      .group(group)
      .help("all names of AdamW are one, fused; adam: the decay is added to the gradient");
  schema.real("learning_rate", &optimizer.learning_rate)
      .alias("lr")
      .environment("LEARNING_RATE")
      .environment("LR")
      .preset(presets.learning_rate)
      .at_least(0)
      .group(group)
      .help("the highest of the schedule");
  schema.real("weight_decay", &optimizer.weight_decay)
      .environment("WEIGHT_DECAY")
      .preset(presets.weight_decay)
      .at_least(0)
      .group(group)
      .help(job == Job::kResnetTinyimagenet ? "of all parameters" : "of all parameters but biases and norms");
  schema.real("adam_beta1", &optimizer.beta1).preset("0.9").range(0, 0.999999999).group(group).help("of the mean");
  schema.real("adam_beta2", &optimizer.beta2).preset("0.999").range(0, 0.999999999).group(group).help("of the square");
  schema.real("adam_epsilon", &optimizer.epsilon).preset("1e-8").at_least(0).group(group).help("added to the root");
  schema.real("momentum", &optimizer.momentum).preset(presets.momentum).range(0, 1).group(group).help("of sgd");
  schema.boolean("nesterov", &optimizer.nesterov).group(group).help("of sgd");
  schema.real("max_grad_norm", &optimizer.max_grad_norm)
      .preset(presets.max_grad_norm)
      .at_least(0)
      .group(group)
      .help("clip the gradients' norm; 0: no clipping");
}

void declare_schedule(Schema& schema, Job job, DeclaredSettings& s) {
  const std::string group = "Learning rate by step";
  ScheduleOptions& schedule = s.train.schedule;
  schema.text("lr_scheduler_type", &schedule.kind)
      .preset(presets_of(job).scheduler)
      .choices({"linear", "cosine", "cosine_with_restarts", "cosine_with_min_lr", "polynomial", "constant",
                "constant_with_warmup", "inverse_sqrt", "WarmupLR", "WarmupDecayLR", "StepLR"})
      .group(group)
      .help("transformers' names; Warmup...: DeepSpeed's; StepLR: torch's, by epoch, with --step_size and --gamma");
  schema.text("lr_scheduler_kwargs", &s.lr_scheduler_kwargs)
      .group(group)
      .help("JSON, by type: num_cycles, power, lr_end, min_lr, min_lr_rate, timescale");
  schema.integer("warmup_steps", &schedule.warmup_steps)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("rising to the rate");
  schema.real("warmup_ratio", &schedule.warmup_ratio)
      .preset("0")
      .range(0, 1)
      .group(group)
      .help("the same as a share of all steps; --warmup_steps beats it");
  schema.text("warmup_type", &s.warmup_type)
      .preset("log")
      .choices({"log", "linear"})
      .group(group)
      .help("how DeepSpeed's schedules rise");
  schema.real("warmup_min_lr", &schedule.warmup_min_lr)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("where DeepSpeed's schedules begin");
  schema.integer("lr_total_steps", &schedule.total_steps)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("steps until the rate is down; 0: as many as the run has");
  schema.integer("step_size", &schedule.step_size)
      .preset("30")
      .at_least(1)
      .group(group)
      .help("epochs between two steps down; of StepLR");
  schema.real("gamma", &schedule.gamma).preset("0.1").at_least(0).group(group).help("what a step down multiplies by");
}

}  // namespace tessera::internal
