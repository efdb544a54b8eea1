#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/json.h"
#include "core/quantity.h"
#include "core/text.h"
#include "parallel/placement.h"
#include "settings/load.h"

namespace tessera {

std::string shown(const Schema& schema, const std::string& name) {
  const Setting& setting = schema.at(name);
  const char* dashes = setting.source() == Source::kCommandLine ? "--" : "";
  return fmt::format("{}{}={} ({})", dashes, setting.name(), setting.shown_text(), setting.origin());
}

void follow(Schema& schema, const std::string& name, const Json& value, const std::string& from) {
  schema.read_json(Json{{name, value}}, "follows from " + from);
}

void overrule(const Schema& schema, const std::string& name, const std::string& other,
              std::vector<std::string>& notes) {
  if (!schema.at(other).is_set()) return;
  const std::string both = fmt::format("{} and {}", shown(schema, name), shown(schema, other));
  if (schema.at(other).source() >= schema.at(name).source()) throw UsageError(both + ": give one");
  notes.push_back(fmt::format("{} overrides {}", shown(schema, name), shown(schema, other)));
}

void require(const std::string& value, const std::string& what) {
  if (value.empty()) throw UsageError(what + " is missing");
}

void resolve_batch(Schema& schema, std::int64_t total, const std::int64_t& batch_size, const std::int64_t& accumulation,
                   int num_ranks, std::vector<std::string>& notes) {
  if (total == 0) return;
  const std::string micro = "per_device_train_batch_size", steps = "gradient_accumulation_steps";
  const bool has_micro = schema.at(micro).is_set(), has_steps = schema.at(steps).is_set();
  const auto product = [&] { return batch_size * accumulation * num_ranks; };
  const std::string own = fmt::format("{} x {}", batch_size, accumulation);
  const std::string ranks = fmt::format("{} rank{}", num_ranks, num_ranks == 1 ? "" : "s");
  if (product() != total && !has_steps) {
    const bool keeps_micro = has_micro || total % (batch_size * num_ranks) == 0;
    const std::int64_t of_a_step = (keeps_micro ? batch_size : total / num_ranks) * num_ranks;
    if (of_a_step > 0 && total % of_a_step == 0) follow(schema, steps, total / of_a_step, "train_batch_size");
  }
  if (product() != total && !has_micro) {
    const std::int64_t per_sample = accumulation * num_ranks;
    if (total % per_sample == 0) follow(schema, micro, total / per_sample, "train_batch_size");
  }
  if (product() != total) {
    throw UsageError(fmt::format("{} is not {} x {} x {}, which makes {}", shown(schema, "train_batch_size"),
                                 shown(schema, micro), shown(schema, steps), ranks, product()));
  }
  const std::string chosen = fmt::format("{} x {}", batch_size, accumulation);
  if (chosen == own) return;
  notes.push_back(fmt::format("{} on {}: batch size x accumulation is {} instead of {}",
                              shown(schema, "train_batch_size"), ranks, chosen, own));
}

namespace {

void resolve_loop(Schema& schema, DeclaredSettings& s, const Resolution& how, std::vector<std::string>& notes) {
  LoopSettings& loop = s.train.loop;
  if (how.num_ranks) {
    resolve_batch(schema, s.train_batch_size, loop.batch_size, loop.accumulation, *how.num_ranks, notes);
  }
  if (!schema.at("per_device_eval_batch_size").is_set() && loop.eval_batch_size == 0)
    loop.eval_batch_size = loop.batch_size;
  loop.max_steps = std::max<std::int64_t>(loop.max_steps, 0);
  loop.data_seed = s.chosen_data_seed();
}

void resolve_data(Schema& schema, DeclaredSettings& s, const Resolution& how, std::vector<std::string>& notes) {
  DataSettings& data = s.train.data;
  data.shuffle = !s.no_shuffle;
  if (s.subset_seed >= 0) data.subset_seed = s.subset_seed;
  if (s.samples_per_rank == 0) return;
  overrule(schema, "samples_per_rank", "max_train_samples", notes);
  if (!how.num_ranks) return;
  const std::int64_t num_samples = s.samples_per_rank * *how.num_ranks;
  follow(schema, "max_train_samples", num_samples, "samples_per_rank");
  notes.push_back(fmt::format("weak scaling: {} samples, {} for each of {} ranks", num_samples, s.samples_per_rank,
                              *how.num_ranks));
}

void resolve_gpu_memory(const Schema& schema, DeclaredSettings& s) {
  if (s.gpu_memory.empty()) return;
  try {
    const bool is_auto = lower_case(s.gpu_memory) == "auto";
    s.train.gpu_memory = is_auto ? std::numeric_limits<std::int64_t>::max() : parse_bytes(s.gpu_memory);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}; or auto", shown(schema, "gpu_memory"), error.what()));
  }
}

void resolve_wrap(Schema& schema, DeclaredSettings& s) {
  WrapSettings& wrap = s.train.wrap;
  for (const std::string& part : split(s.wrap_classes, ',')) {
    const std::string_view dotted = trim(part);
    const std::string_view name = dotted.substr(dotted.rfind('.') + 1);  // npos + 1 is 0: the whole
    if (!name.empty()) wrap.classes.emplace_back(name);
  }
  const bool by_class = !wrap.classes.empty(), by_size = wrap.min_num_params > 0;
  if (by_class && by_size) {
    throw UsageError(fmt::format("{} and {} exclude each other; give one", shown(schema, "wrap_classes"),
                                 shown(schema, "min_num_params")));
  }
  if (!schema.at("wrap").is_set() && (by_class || by_size)) {
    follow(schema, "wrap", by_class ? "class" : "size", by_class ? "--wrap_classes" : "--min_num_params");
  }
  const auto need = [&](UnitWrap kind, const char* word, const char* name, bool is_given) {
    if ((wrap.wrap == kind) == is_given) return;
    throw UsageError(
        is_given ? fmt::format("{}: only with --wrap {}, found {}", shown(schema, name), word, schema.at("wrap").text())
                 : fmt::format("{}: needs --{}", shown(schema, "wrap"), name));
  };
  need(UnitWrap::kByClass, "class", "wrap_classes", by_class);
  need(UnitWrap::kBySize, "size", "min_num_params", by_size);
}

void resolve_precision(const Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  PrecisionSettings& precision = s.train.precision;
  if (s.fp16 && s.bf16) {
    throw UsageError(
        fmt::format("{} and {} exclude each other; choose one", shown(schema, "fp16"), shown(schema, "bf16")));
  }
  precision.compute = s.fp16 ? NumberType::kFloat16 : s.bf16 ? NumberType::kBFloat16 : NumberType::kFloat32;
  precision.is_amp = job.is_amp;
  precision.half_on_gpu = job.is_amp && !schema.at("fp16").is_set() && !schema.at("bf16").is_set();
  if (schema.at("tf32").is_set()) precision.tf32 = s.tf32;
  LossScaleOptions& scale = precision.loss_scale;
  scale.initial = s.loss_scale > 0 ? s.loss_scale : std::ldexp(1.0, s.initial_scale_power);
  // Options that torch's rule does not have select DeepSpeed's.
  const bool is_deepspeeds =
      !s.files.deepspeed.empty() || scale.hysteresis > 1 || scale.consecutive_hysteresis || scale.minimum > 0;
  scale.rule = s.loss_scale > 0 ? LossScaleOptions::Rule::kFixed
               : is_deepspeeds  ? LossScaleOptions::Rule::kDeepSpeed
                                : LossScaleOptions::Rule::kTorch;
}

// lr_scheduler_kwargs: which types have which option.
struct ScheduleOption {
  const char* name;
  std::optional<double> ScheduleOptions::*member;
  std::vector<std::string> kinds;
  double low, high;  // both allowed
};

const std::vector<ScheduleOption>& schedule_options() {
  static const std::vector<ScheduleOption> options = {
      {"num_cycles", &ScheduleOptions::num_cycles, {"cosine", "cosine_with_restarts", "cosine_with_min_lr"}, 0, 1e9},
      {"power", &ScheduleOptions::power, {"polynomial"}, 0, 1e9},
      {"lr_end", &ScheduleOptions::lr_end, {"polynomial"}, 0, 1e9},
      {"min_lr", &ScheduleOptions::min_lr, {"cosine_with_min_lr"}, 0, 1e9},
      {"min_lr_rate", &ScheduleOptions::min_lr_rate, {"cosine_with_min_lr"}, 0, 1},
      {"timescale", &ScheduleOptions::timescale, {"inverse_sqrt"}, 1, 1e18}};
  return options;
}

void resolve_schedule(const Schema& schema, DeclaredSettings& s) {
  ScheduleOptions& schedule = s.train.schedule;
  schedule.learning_rate = s.train.optimizer.learning_rate;
  // A fraction, as in transformers 5, which has no warmup_ratio.
  const bool is_whole = s.warmup_steps == std::floor(s.warmup_steps);
  if (!is_whole && s.warmup_steps > 1) {
    throw UsageError(fmt::format("{}: expected a whole number, or a fraction below 1", shown(schema, "warmup_steps")));
  }
  if (!is_whole && schedule.warmup_ratio > 0) {
    throw UsageError(fmt::format("{} and {} exclude each other; give one", shown(schema, "warmup_steps"),
                                 shown(schema, "warmup_ratio")));
  }
  schedule.warmup_steps = is_whole ? static_cast<std::int64_t>(s.warmup_steps) : 0;
  if (!is_whole) schedule.warmup_ratio = s.warmup_steps;
  if (trim(s.lr_scheduler_kwargs).empty()) return;
  const std::string place = "--lr_scheduler_kwargs";
  const Json given = parse_json(s.lr_scheduler_kwargs, place);
  if (!given.is_object()) throw UsageError(place + ": expected a JSON object, {\"num_cycles\": 0.5}");
  for (const auto& [key, value] : given.items()) {
    const auto& options = schedule_options();
    const auto option = std::ranges::find_if(options, [&, &name = key](const auto& each) {
      return name == each.name && std::ranges::find(each.kinds, schedule.kind) != each.kinds.end();
    });
    if (option == options.end()) {
      throw UsageError(
          fmt::format("{}: {} has no option {}", place, shown(schema, "lr_scheduler_type"), printable(key, 40)));
    }
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!(number >= option->low && number <= option->high)) {
      throw UsageError(fmt::format("{}: {}: expected a number from {} to {}, found {}", place, key, option->low,
                                   option->high, printable(value.dump(), 40)));
    }
    schedule.*(option->member) = number;
  }
}

void resolve_metric(const Schema& schema, const JobTraits& job, DeclaredSettings& s) {
  EvaluationSettings& evaluation = s.train.evaluation;
  std::string& metric = evaluation.metric_for_best_model;
  const bool needs_one = evaluation.load_best_model_at_end || evaluation.early_stopping_patience > 0;
  if (metric.empty() && needs_one) metric = "loss";
  if (metric.empty()) return;
  if (metric.starts_with("eval_")) metric.erase(0, 5);
  const std::vector<std::string>& metrics = job.metrics;
  if (std::ranges::find(metrics, metric) == metrics.end()) {
    throw UsageError(fmt::format("{}: expected one of {}{}", shown(schema, "metric_for_best_model"),
                                 join(metrics, ", "), did_you_mean(metric, metrics, "; did you mean {}?")));
  }
  evaluation.greater_is_better = schema.at("greater_is_better").is_set() ? s.greater_is_better : metric != "loss";
}

void resolve_evaluation(const Schema& schema, const JobTraits& job, DeclaredSettings& s, const Resolution& how,
                        std::vector<std::string>& notes) {
  EvaluationSettings& evaluation = s.train.evaluation;
  FlowOptions& flow = s.train.flow;
  const bool lacks_data = !job.has_evaluation_data(s.train);
  const bool wants_any = flow.evaluation != Interval::kNo || s.do_eval || evaluation.on_start;
  if (lacks_data && wants_any && how.needs_data) {
    for (const char* name : {"eval_strategy", "do_eval", "eval_on_start"}) {
      const Setting& setting = schema.at(name);
      if (!setting.is_set() || setting.text() == "no" || setting.text() == "false") continue;
      throw UsageError(
          fmt::format("{}: there is no data for it; give {}", shown(schema, name), job.evaluation_setting));
    }
  }
  if (lacks_data && flow.evaluation != Interval::kNo && !schema.at("eval_strategy").is_set()) {
    flow.evaluation = Interval::kNo;
    if (!job.evaluation_setting.empty()) {
      notes.push_back(fmt::format("no {}: there will be no evaluation", job.evaluation_setting));
    }
  }
  const bool refuses_any = schema.at("do_eval").is_set() && !s.do_eval;
  if (refuses_any && flow.evaluation != Interval::kNo) {
    if (schema.at("eval_strategy").is_set()) {
      notes.push_back(fmt::format("{} changes nothing: {} evaluates, as in transformers", shown(schema, "do_eval"),
                                  shown(schema, "eval_strategy")));
    } else {
      flow.evaluation = Interval::kNo;
      notes.push_back(fmt::format("{}: there will be no evaluation", shown(schema, "do_eval")));
    }
  }
  evaluation.at_end = s.do_eval && flow.evaluation == Interval::kNo;
  constexpr double kOfTransformers = 500;  // a job's own preset stays
  flow.logs_short_runs = !schema.at("logging_steps").is_set() && flow.logging_steps == kOfTransformers;
  flow.eval_steps = s.eval_steps > 0 ? s.eval_steps : flow.logging_steps;
  resolve_metric(schema, job, s);
}

void resolve_output(DeclaredSettings& s) {
  OutputSettings& output = s.train.output;
  if (output.output_dir.empty()) throw UsageError("--output_dir is empty: expected a folder");
  output.shows_progress = !s.disable_tqdm;
  const bool is_latest = s.resume == "latest";
  const std::optional<bool> flag = s.resume.size() > 1 ? parse_bool(s.resume) : std::nullopt;
  output.resume_from_latest = is_latest || flag.value_or(false);
  output.resume_from_checkpoint = is_latest || flag ? "" : s.resume;
}

// "20-22" or "20".
void resolve_profile(const Schema& schema, DeclaredSettings& s) {
  constexpr std::int64_t kMostSteps = 50;  // a trace of more opens in no viewer
  if (s.profile_steps.empty()) return;
  const std::vector<std::string> ends = split(s.profile_steps, '-');
  const auto first = parse_integer(ends.front()), last = parse_integer(ends.back());
  if (ends.size() > 2 || !first || !last || *first < 1 || *last < *first || *last - *first >= kMostSteps) {
    throw UsageError(fmt::format("{}: expected a step or a range of at most {} steps, such as 20-22",
                                 shown(schema, "profile_steps"), kMostSteps));
  }
  s.train.reports.first_profiled = *first;
  s.train.reports.last_profiled = *last;
}

void resolve_reports(const Schema& schema, DeclaredSettings& s, std::vector<std::string>& notes) {
  ReportSettings& reports = s.train.reports;
  resolve_profile(schema, s);
  for (const std::string& part : split(s.report_to, ',')) {
    const std::string word = lower_case(trim(part));
    if (word == "tensorboard" || word == "all") reports.tensorboard = true;
    if (word == "wandb" || word == "all") reports.wandb = true;
    if (word == "tensorboard" || word == "wandb" || word == "all" || word == "none") continue;
    throw UsageError(
        fmt::format("{}: expected tensorboard, wandb, all or none, separated by commas", shown(schema, "report_to")));
  }
  if (reports.wandb_name.empty()) reports.wandb_name = reports.run_name;
  const std::string mode = lower_case(reports.wandb_mode);
  if (!reports.wandb && schema.at("wandb_mode").is_set() && !schema.at("report_to").is_set() && mode != "disabled") {
    notes.push_back(fmt::format(
        "{} changes nothing: there is no report to W&B; --report_to tensorboard,wandb writes an offline run, which "
        "`wandb sync` uploads",
        shown(schema, "wandb_mode")));
  }
  if (!reports.wandb) return;
  if (mode == "disabled") {
    reports.wandb = false;
  } else if (mode != "offline" && mode != "dryrun") {
    throw UsageError(fmt::format("{}: Tessera writes offline runs; use offline, and `wandb sync` the folder afterwards",
                                 shown(schema, "wandb_mode")));
  }
  // It becomes part of file names, and of the address to which the run is uploaded.
  if (reports.wandb_run_id.find_first_of("/\\#?%: ") != std::string::npos) {
    throw UsageError(fmt::format("{}: must not contain / \\ # ? % : or a space", shown(schema, "wandb_run_id")));
  }
}

}  // namespace

void resolve(Schema& schema, const JobTraits& job, DeclaredSettings& s, const Resolution& how,
             std::vector<std::string>& notes) {
  s.train.spread = resolve_strategy(s.train.spread, how.num_ranks.value_or(1));
  s.train.optimizer.decays_all = job.decays_all;
  resolve_gpu_memory(schema, s);
  resolve_wrap(schema, s);
  resolve_precision(schema, job, s);
  resolve_loop(schema, s, how, notes);
  job.resolve(schema, s, how, notes);
  resolve_data(schema, s, how, notes);
  resolve_schedule(schema, s);
  resolve_evaluation(schema, job, s, how, notes);
  resolve_output(s);
  resolve_reports(schema, s, notes);
  internal::check_combinations(schema, job, s, how, notes);
}

}  // namespace tessera
