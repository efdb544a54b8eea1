// Settings of training: loop, precision, optimizer, schedule.
#include "settings/declared.h"
#include "settings/shared.h"

namespace tessera::internal {

void declare_loop(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  const std::string group = "Steps and batches";
  const JobPresets& presets = job.presets;
  LoopSettings& loop = s.train.loop;
  shared::train_batch_size(schema, &loop.batch_size, group)
      .alias("per_gpu_train_batch_size")
      .environment("BATCH_SIZE")
      .environment("PER_DEVICE_BATCH_SIZE")
      .preset(presets.batch_size);
  Setting& eval = shared::eval_batch_size(schema, &loop.eval_batch_size, group)
                      .alias("per_gpu_eval_batch_size")
                      .environment("BATCH_SIZE")
                      .environment("PER_DEVICE_BATCH_SIZE");
  if (presets.eval_batch_size.empty()) {
    eval.help("samples per rank and evaluation pass; none: as in training");
  } else {
    eval.preset(presets.eval_batch_size);
  }
  shared::accumulation(schema, &loop.accumulation, group)
      .environment("GRAD_ACC")
      .environment("GRAD_ACC_STEPS")
      .preset(presets.accumulation);
  shared::total_batch_size(schema, &s.train_batch_size, group);
  schema.word("merge_accumulation", &loop.merge_accumulation, {"auto", "on", "off"})
      .preset("auto")
      .group(group)
      .help("run the micro-steps of an update as one pass; auto: if memory allows");
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
      .help("number of updates, overrides --num_train_epochs; -1: use the epochs");
  shared::seed(schema, &loop.seed, group);
  schema.integer("data_seed", &s.data_seed)
      .preset("-1")
      .range(-1, 4294967295.0)
      .group(group)
      .help("seed of the data order; -1: --seed");
  schema.boolean("full_determinism", &loop.full_determinism)
      .group(group)
      .help("give the same bits in every run on the same GPUs, at some cost; CPU ranks always do");
  shared::gradient_checkpointing(schema, &loop.gradient_checkpointing, group);
  schema.word("short_group", &loop.short_group, {"not_counted", "counted"})
      .preset("not_counted")
      .group(group)
      .help(
          "whether an epoch's short last group of micro-steps counts towards the run's length; counted: as "
          "transformers from 4.52 on");
  schema.boolean("stop_on_nan", &loop.stop_on_nan)
      .preset("true")
      .group(group)
      .help("end the run if the loss is not finite");
  schema.boolean("dry_run", &s.train.dry_run)
      .group(group)
      .help("do everything up to the first step, then print the memory plan and exit");
  schema.boolean("predict_speed", &s.train.predicts_speed)
      .group(group)
      .help(
          "with --dry_run: also try a few steps and print the samples/s to expect; text models are tried with some of "
          "their blocks");
}

void declare_precision(Schema& schema, DeclaredSettings& s) {
  const std::string group = "Precision";
  LossScaleOptions& scale = s.train.precision.loss_scale;
  shared::half_types(schema, &s.fp16, &s.bf16, group);
  schema.boolean("tf32", &s.tf32)
      .group(group)
      .help("compute float32 products in TF32 on GPUs that have it; unset: libtorch's default");
  const std::vector<std::string> types = {"auto", "fp32", "bf16", "fp16"};  // after auto, in NumberType's order
  const auto type = [&](const char* name, std::optional<NumberType>* value) -> Setting& {
    return schema.word(name, types, [value](std::size_t place) {
      *value = place == 0 ? std::nullopt : std::optional(static_cast<NumberType>(place - 1));
    });
  };
  type("reduce_dtype", &s.train.precision.reduce)
      .preset("auto")
      .group(group)
      .help("type in which gradients are reduced between ranks; auto: the compute type");
  type("buffer_dtype", &s.train.precision.buffers)
      .preset("auto")
      .group(group)
      .help("type of module buffers; the text models have none, and batch norm's statistics stay in fp32");
  schema.real("loss_scale", &s.loss_scale)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("fixed loss scale of fp16; 0: dynamic");
  schema.integer("initial_scale_power", &s.initial_scale_power)
      .preset("16")
      .range(0, 127)
      .group(group)
      .help("the dynamic scale starts at 2 to this power");
  schema.integer("loss_scale_window", &scale.growth_interval)
      .preset("2000")
      .at_least(1)
      .group(group)
      .help("steps without an overflow until the scale doubles");
  schema.integer("hysteresis", &scale.hysteresis)
      .preset("1")
      .at_least(1)
      .group(group)
      .help("overflows until the scale halves");
  schema.boolean("consecutive_hysteresis", &scale.consecutive_hysteresis)
      .group(group)
      .help("count only overflows of consecutive steps");
  schema.real("min_loss_scale", &scale.minimum).preset("0").at_least(0).group(group).help("smallest loss scale");
}

void declare_optimizer(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  const std::string group = "Optimizer";
  const JobPresets& presets = job.presets;
  OptimizerSettings& optimizer = s.train.optimizer;
  OptimizerNumbers& numbers = optimizer.numbers;
  shared::optim(schema, &optimizer.optim, group).preset(presets.optim);
  schema.real("learning_rate", &optimizer.learning_rate)
      .alias("lr")
      .environment("LEARNING_RATE")
      .environment("LR")
      .preset(presets.learning_rate)
      .at_least(0)
      .group(group)
      .help("maximum learning rate of the schedule");
  schema.real("weight_decay", &numbers.weight_decay)
      .environment("WEIGHT_DECAY")
      .preset(presets.weight_decay)
      .at_least(0)
      .group(group)
      .help(job.decays_all ? "weight decay of all parameters" : "weight decay of all parameters but biases and norms");
  schema.real("adam_beta1", &numbers.beta1)
      .preset("0.9")
      .range(0, 0.999999999)
      .group(group)
      .help("decay of the gradient's running mean");
  schema.real("adam_beta2", &numbers.beta2)
      .preset("0.999")
      .range(0, 0.999999999)
      .group(group)
      .help("decay of the gradient's running mean square");
  schema.real("adam_epsilon", &numbers.epsilon)
      .preset("1e-8")
      .at_least(0)
      .group(group)
      .help("added to the square root of the mean square");
  shared::momentum(schema, &numbers.momentum, group).preset(presets.momentum);
  schema.boolean("nesterov", &numbers.nesterov).group(group).help("use Nesterov momentum with sgd");
  schema.real("max_grad_norm", &optimizer.max_grad_norm)
      .preset(presets.max_grad_norm)
      .at_least(0)
      .group(group)
      .help("clip the gradient's norm to this; 0: no clipping");
}

void declare_schedule(Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  const std::string group = "Learning-rate schedule";
  ScheduleOptions& schedule = s.train.schedule;
  schema.text("lr_scheduler_type", &schedule.kind)
      .preset(job.presets.scheduler)
      .choices(schedule_kinds())
      .group(group)
      .help("transformers' names; Warmup...: DeepSpeed's; StepLR: torch's, by epoch, with --step_size and --gamma");
  schema.text("lr_scheduler_kwargs", &s.lr_scheduler_kwargs)
      .group(group)
      .help("JSON with options of the type: num_cycles, power, lr_end, min_lr, min_lr_rate, timescale");
  schema.integer("warmup_steps", &schedule.warmup_steps)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("steps over which the rate rises to its maximum");
  schema.real("warmup_ratio", &schedule.warmup_ratio)
      .preset("0")
      .range(0, 1)
      .group(group)
      .help("the same as a fraction of all steps; --warmup_steps overrides it");
  schema.word("warmup_type", &schedule.warmup_shape, {"log", "linear"})
      .preset("log")
      .group(group)
      .help("shape of the warm-up in DeepSpeed's schedules");
  schema.real("warmup_min_lr", &schedule.warmup_min_lr)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("learning rate at which DeepSpeed's schedules start");
  schema.integer("lr_total_steps", &schedule.total_steps)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("steps until the rate has decayed; 0: the run's own number");
  schema.integer("step_size", &schedule.step_size)
      .preset("30")
      .at_least(1)
      .group(group)
      .help("StepLR: epochs between two decays");
  schema.real("gamma", &schedule.gamma).preset("0.1").at_least(0).group(group).help("StepLR: factor of each decay");
}

}  // namespace tessera::internal
