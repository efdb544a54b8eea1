// Settings that make no sense together, refused before anything starts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "core/error.h"
#include "core/text.h"
#include "parallel/placement.h"
#include "settings/load.h"

namespace tessera {

namespace {

bool from_command_line(const Schema& schema, const char* name) {
  return schema.at(name).source() == Source::kCommandLine;
}

[[noreturn]] void refuse(const std::string& message) {
  throw UsageError(message);
}

// For a value that is given on the command line and that nothing would read.
void need(const Schema& schema, bool is_read, std::initializer_list<const char*> names, const std::string& condition) {
  if (is_read) return;
  for (const char* name : names) {
    if (from_command_line(schema, name)) refuse(fmt::format("{}: only {}", shown(schema, name), condition));
  }
}

void check_spread(const Schema& schema, const DeclaredSettings& s, const Resolution& how) {
  const SpreadOptions& spread = s.train.spread;
  const Placement& row = placement_of(spread.strategy);
  const bool splits_parameters = row.parameters.is_split();
  if (!s.files.fsdp_config.empty() && row.family != StrategyFamily::kFsdp) {
    refuse(fmt::format("--fsdp_config: needs --fsdp \"full_shard auto_wrap\" or another of its strategies, found {}",
                       shown(schema, "strategy")));
  }
  if (row.is_for_one_rank && how.num_ranks.value_or(1) > 1) {
    refuse(fmt::format("{}: there are {} ranks; use ddp or another strategy, or start one rank",
                       shown(schema, "strategy"), *how.num_ranks));
  }
  if (spread.offload_parameters && !splits_parameters) {
    refuse(fmt::format("{}: needs a strategy that splits the parameters ({}), found {}", shown(schema, "offload_param"),
                       join(strategies_that_split_parameters(), ", "), shown(schema, "strategy")));
  }
  need(schema, spread.offload_optimizer || spread.offload_parameters, {"pin_memory", "gpu_memory", "units_on_device"},
       "with --offload_optimizer or --offload_param");
  if (s.train.gpu_memory || spread.units_on_device > 0) {
    const char* const given = s.train.gpu_memory ? "gpu_memory" : "units_on_device";
    if (s.train.gpu_memory && spread.units_on_device > 0) {
      refuse(fmt::format("{} and {} exclude each other; give one", shown(schema, "gpu_memory"),
                         shown(schema, "units_on_device")));
    }
    if (spread.delayed_update) {
      refuse(fmt::format("{}: not with {}, which would leave units on the GPU a step ahead of the others",
                         shown(schema, given), shown(schema, "delayed_update")));
    }
    if (s.train.gpu_memory && s.train.wrap.wrap != UnitWrap::kBlocks) {
      refuse(fmt::format("{}: memory is planned for --wrap blocks only, found {}", shown(schema, "gpu_memory"),
                         shown(schema, "wrap")));
    }
  }
  need(schema, spread.offload_optimizer, {"delayed_update"}, "with --offload_optimizer");
  need(schema, row.keeps_second_copy(), {"hpz_partition_size"}, "with --strategy zero3_hpz");
  need(schema, splits_parameters, {"forward_prefetch", "backward_prefetch", "wrap_classes", "wrap"},
       "with a strategy that splits the parameters, found " + spread.strategy);
}

// Numbers of optimizers other than the chosen one.
void check_optimizer(const Schema& schema, const DeclaredSettings& s, std::vector<std::string>& notes) {
  const OptimizerSettings& optimizer = s.train.optimizer;
  const OptimizerKind& chosen = optimizer_of(optimizer.optim);
  for (const OptimizerKind* other : optimizers()) {
    for (const std::string& name : other->reads) {
      const bool is_read = std::ranges::find(chosen.reads, name) != chosen.reads.end();
      need(schema, is_read, {name.c_str()}, "with --optim " + other->words.front());
    }
  }
  if (divides_by_zero(optimizer)) {
    notes.push_back(
        fmt::format("{}: a parameter whose gradients were all 0 is updated by 0 / 0 and becomes NaN; use 1e-8",
                    shown(schema, "adam_epsilon")));
  }
  if (optimizer.numbers.nesterov && optimizer.numbers.momentum == 0) refuse("--nesterov: needs --momentum above 0");
  need(schema, s.train.precision.compute == NumberType::kFloat16 || s.train.precision.half_on_gpu,
       {"loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis", "consecutive_hysteresis",
        "min_loss_scale"},
       "with --fp16");
  need(schema, s.loss_scale == 0,
       {"initial_scale_power", "loss_scale_window", "hysteresis", "consecutive_hysteresis", "min_loss_scale"},
       "with a dynamic scale, --loss_scale 0");
}

void check_buffers(const Schema& schema, const JobTraits& job, const DeclaredSettings& s,
                   std::vector<std::string>& notes) {
  const std::optional<NumberType>& type = s.train.precision.buffers;
  if (!type) return;
  if (!job.has_buffers) {
    notes.push_back(fmt::format("{} changes nothing: the model has no buffers", shown(schema, "buffer_dtype")));
  } else if (*type != NumberType::kFloat32) {
    refuse(fmt::format("{}: batch norm's statistics stay in fp32; leave it out", shown(schema, "buffer_dtype")));
  }
}

void check_schedule(const Schema& schema, const DeclaredSettings& s, std::vector<std::string>& notes) {
  const ScheduleOptions& schedule = s.train.schedule;
  const bool is_step = schedule.kind == "StepLR";
  const bool is_deepspeeds = schedule.kind.starts_with("Warmup");
  const bool has_warmup = schedule.warmup_steps > 0 || schedule.warmup_ratio > 0;
  if (has_warmup && (is_step || schedule.kind == "constant")) {
    refuse(fmt::format("{}: {} has no warm-up; use {}",
                       shown(schema, s.warmup_steps > 0 ? "warmup_steps" : "warmup_ratio"),
                       shown(schema, "lr_scheduler_type"), is_step ? "linear" : "constant_with_warmup"));
  }
  need(schema, is_step, {"step_size", "gamma"}, "with --lr_scheduler_type StepLR");
  need(schema, is_deepspeeds, {"warmup_type", "warmup_min_lr"},
       "with DeepSpeed's schedules, WarmupLR and WarmupDecayLR");
  if (schedule.kind == "cosine_with_min_lr" && schedule.min_lr.has_value() == schedule.min_lr_rate.has_value()) {
    refuse("--lr_scheduler_type=cosine_with_min_lr: needs one of min_lr and min_lr_rate in --lr_scheduler_kwargs");
  }
  if (schedule.warmup_steps > 0 && schedule.warmup_ratio > 0) {
    notes.push_back(fmt::format("{} overrides {}, as in transformers", shown(schema, "warmup_steps"),
                                shown(schema, "warmup_ratio")));
  }
  const std::int64_t max_steps = s.train.loop.max_steps;
  if (max_steps > 0) check_total_steps(s.train, max_steps);
  if (max_steps > 0 && from_command_line(schema, "num_train_epochs") && from_command_line(schema, "max_steps")) {
    notes.push_back(fmt::format("{} overrides {}, as in transformers", shown(schema, "max_steps"),
                                shown(schema, "num_train_epochs")));
  }
}

// As in transformers: whole numbers, or fractions below 1 of all steps. Many scripts give steps with another strategy.
void check_steps(const Schema& schema, const char* strategy, const char* steps, Interval interval, double value,
                 std::vector<std::string>& notes) {
  if (interval != Interval::kSteps && from_command_line(schema, steps)) {
    notes.push_back(fmt::format("{} changes nothing: {} is {}", shown(schema, steps), strategy,
                                kIntervalNames[static_cast<std::size_t>(interval)]));
  }
  if (interval != Interval::kSteps) return;
  if (value == 0) refuse(fmt::format("{}: needs --{} above 0", shown(schema, strategy), steps));
  if (value > 1 && value != std::floor(value)) {
    refuse(fmt::format("{}: expected a whole number, or a fraction below 1", shown(schema, steps)));
  }
}

void check_best(const Schema& schema, const JobTraits& job, const DeclaredSettings& s) {
  const EvaluationSettings& evaluation = s.train.evaluation;
  const FlowOptions& flow = s.train.flow;
  const bool evaluates = flow.evaluation != Interval::kNo;
  if (evaluation.early_stopping_patience > 0 && !evaluates) {
    refuse(fmt::format("{}: needs evaluations during training; give --eval_strategy epoch and {}",
                       shown(schema, "early_stopping_patience"), job.evaluation_setting));
  }
  if (flow.saving == Interval::kBest && (!evaluates || evaluation.metric_for_best_model.empty())) {
    refuse(fmt::format("{}: needs --metric_for_best_model and evaluations during training",
                       shown(schema, "save_strategy")));
  }
  if (!evaluation.load_best_model_at_end || flow.saving == Interval::kBest) return;
  if (flow.evaluation != flow.saving || !evaluates) {
    const bool is_off = !evaluates && schema.at("eval_strategy").text() != "no";
    const std::string why = job.has_evaluation_data(s.train) ? fmt::format(", with {},", shown(schema, "do_eval"))
                                                             : fmt::format(", without {},", job.evaluation_setting);
    refuse(fmt::format("{}: needs the same strategy for evaluation and saving, found {}{} and {}",
                       shown(schema, "load_best_model_at_end"), shown(schema, "eval_strategy"), is_off ? why : "",
                       shown(schema, "save_strategy")));
  }
  if (flow.evaluation != Interval::kSteps) return;
  const double eval_steps = flow.eval_steps.value_or(flow.logging_steps);
  const bool both_shares = eval_steps < 1 && flow.save_steps < 1, none = eval_steps >= 1 && flow.save_steps >= 1;
  const double ratio = flow.save_steps / eval_steps;
  if ((!both_shares && !none) || std::abs(ratio - std::round(ratio)) > 1e-6 || ratio < 0.5) {
    refuse(fmt::format("{}: needs save_steps that are a multiple of eval_steps, found {} and {}",
                       shown(schema, "load_best_model_at_end"), flow.save_steps, eval_steps));
  }
}

}  // namespace

namespace internal {

void check_combinations(const Schema& schema, const JobTraits& job, const DeclaredSettings& s, const Resolution& how,
                        std::vector<std::string>& notes) {
  const TrainSettings& train = s.train;
  check_spread(schema, s, how);
  check_optimizer(schema, s, notes);
  check_buffers(schema, job, s, notes);
  check_schedule(schema, s, notes);
  const FlowOptions& flow = train.flow;
  check_steps(schema, "eval_strategy", "eval_steps", flow.evaluation, flow.eval_steps.value_or(0), notes);
  check_steps(schema, "save_strategy", "save_steps", flow.saving, flow.save_steps, notes);
  check_steps(schema, "logging_strategy", "logging_steps", flow.logging, flow.logging_steps, notes);
  check_best(schema, job, s);
  need(schema, train.dry_run, {"predict_speed"}, "with --dry_run");
  need(schema, train.data.num_workers != 0, {"dataloader_prefetch_factor"},
       "with --dataloader_num_workers other than 0");
  job.check(schema, s, how.needs_data);
}

}  // namespace internal

bool divides_by_zero(const OptimizerSettings& optimizer) {
  const std::vector<std::string>& reads = optimizer_of(optimizer.optim).reads;
  const bool has_epsilon = std::ranges::find(reads, "adam_epsilon") != reads.end();
  return has_epsilon && static_cast<float>(optimizer.numbers.epsilon) == 0;
}

void check_total_steps(const TrainSettings& settings, std::int64_t num_steps) {
  const ScheduleOptions& schedule = settings.schedule;
  // A constant rate may take longer to reach than the run lasts; a falling one would never start to fall.
  const bool may_be_longer = schedule.kind == "WarmupLR" || schedule.kind == "constant_with_warmup";
  if (!may_be_longer && schedule.warmup_steps > num_steps) {
    refuse(fmt::format("warmup_steps {}: the run has only {} steps; give fewer, or --warmup_ratio",
                       schedule.warmup_steps, num_steps));
  }
  if (settings.reports.last_profiled > num_steps) {
    refuse(fmt::format("profile_steps {}-{}: the run has only {} steps", settings.reports.first_profiled,
                       settings.reports.last_profiled, num_steps));
  }
  if (schedule.total_steps > 0 && schedule.total_steps != num_steps) {
    refuse(fmt::format("total_num_steps {}: the run has {} steps; write \"auto\"", schedule.total_steps, num_steps));
  }
}

}  // namespace tessera
