// Settings of training: loop, precision, optimizer, schedule.
#include "settings/declared.h"
#include "settings/shared.h"

namespace tessera::internal {

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
  schema.integer("seed", &loop.seed, "seed of every random number: weights, dropout, data order",
                 {.preset = "42", .at_least = 0, .at_most = 4294967295.0});
  schema.integer("data_seed", &s.data_seed, "seed of the data order; -1: --seed",
                 {.preset = "-1", .at_least = -1, .at_most = 4294967295.0});
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
  schema.integer("warmup_steps", &schedule.warmup_steps, "steps over which the rate rises to its maximum",
                 {.preset = "0", .at_least = 0});
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

}  // namespace tessera::internal
