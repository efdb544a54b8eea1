#include "jobs/jobs.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "jobs/run_plan.h"
#include "train/flow.h"

namespace tessera {
namespace {

const char* precision_of(NumberType type) {
  return type == NumberType::kFloat16 ? "fp16" : type == NumberType::kBFloat16 ? "bf16" : "fp32";
}

// Those of a step at its peak, on one rank.
LogRecord planned_memory_of(OpenJob& job) {
  if (!has_planned_units(job.task().model(), job.settings().wrap)) return {};
  try {
    const PlanReport report = job.memory_plan();
    if (report.rows.empty()) return {};
    const MemoryPlan& plan = report.rows.front().plan;
    return {{"parameters", plan.peak.parameters},   {"gradients", plan.peak.gradients},
            {"optimizer", plan.peak.optimizer},     {"in_flight", plan.peak.in_flight},
            {"activations", plan.peak.activations}, {"total", plan.peak.total()},
            {"host_total", plan.host.total()}};
  } catch (const std::exception& error) {
    log_debug("no memory plan: {}", error.what());  // if something is wrong, the run itself reports it
    return {};
  }
}

// By the names of the settings that leave the choice to the run.
LogRecord decided_settings(const World& world, const TrainSettings& settings, const StepPlan& steps) {
  const bool merges = settings.loop.merge_accumulation == MergeAccumulation::kOn;
  LogRecord decided = {{"strategy", settings.spread.strategy},
                       {"merge_accumulation", std::string(merges ? "on" : "off")},
                       {"device", std::string(world.device().is_cuda() ? "cuda" : "cpu")},
                       {"backend", std::string(world.backend_name())},
                       {"per_device_eval_batch_size", settings.loop.eval_batch_size}};
  const double logging_steps = with_short_runs_logged(settings.flow, steps.total_steps()).logging_steps;
  if (settings.flow.logging == Interval::kSteps && logging_steps < settings.flow.logging_steps) {
    decided.set("logging_steps", static_cast<std::int64_t>(logging_steps));
  }
  if (settings.precision.half_on_gpu) decided.set("fp16", settings.precision.compute == NumberType::kFloat16);
  return decided;
}

}  // namespace

const std::vector<Job>& jobs() {
  static const std::vector<Job> all = {sft(), lm(), qa(), bloom_qa(), gpt_qa(), resnet_tinyimagenet()};
  return all;
}

const Job& job_of(std::string_view name) {
  for (const Job& job : jobs()) {
    if (job.traits.name == name) return job;
  }
  throw Error("there is no job " + std::string(name));
}

std::vector<const JobTraits*> job_traits() {
  std::vector<const JobTraits*> traits;
  for (const Job& job : jobs()) traits.push_back(&job.traits);
  return traits;
}

std::int64_t num_parameters(const torch::nn::Module& model) {
  std::int64_t numel = 0;
  for (const at::Tensor& parameter : model.parameters()) numel += parameter.numel();
  return numel;
}

RunFacts facts_of(const World& world, const LoadedTrainSettings& run, OpenJob& job, const StepPlan& steps,
                  std::int64_t first_step) {
  const TrainSettings& settings = job.settings();
  const LoopSettings& loop = settings.loop;
  const Environment& environment = run.request.environment;
  RunFacts made;
  LogRecord& facts = made.facts;
  facts.set("job", settings.job);
  const auto set_from = [&](const char* fact, const char* variable) {
    if (const auto value = environment.find(variable)) facts.set(fact, *value);
  };
  set_from("experiment", "TESSERA_EXPERIMENT");
  set_from("job_id", "SLURM_JOB_ID");
  const auto gate = environment.find("TESSERA_GATE_GBPS");  // of the bandwidth gate that ran before
  if (const auto figure = gate ? parse_real(*gate) : std::nullopt) facts.set("gate_GBps", *figure);
  facts.set("device", std::string(world.device().is_cuda() ? "cuda" : "cpu"));
  facts.set("nodes", std::int64_t{world.num_nodes()});
  facts.set("ranks", std::int64_t{world.size()});
  facts.set("ranks_per_node", std::int64_t{ranks_of_node(world)});
  facts.set("strategy", settings.spread.strategy);
  facts.set("offload_optimizer", settings.spread.offload_optimizer);
  facts.set("offload_param", settings.spread.offload_parameters);
  if (settings.spread.units_on_device > 0 && world.device().is_cuda()) {
    facts.set("units_on_device", settings.spread.units_on_device);
  }
  facts.set("pin_memory", settings.spread.pin_memory);
  facts.set("merge_accumulation", loop.merge_accumulation == MergeAccumulation::kOn);
  facts.set("precision", std::string(precision_of(settings.precision.compute)));
  if (!settings.data.label_mode.empty()) facts.set("label_mode", settings.data.label_mode);
  facts.set("num_parameters", num_parameters(job.task().model()));
  facts.set("num_layers", std::int64_t{std::ssize(job.task().model().units())});  // the model's blocks
  facts.set("train_rows", job.task().num_rows());
  facts.set("eval_rows", job.task().num_eval_rows());
  facts.set("batch_size", loop.batch_size);
  facts.set("accumulation", loop.accumulation);
  facts.set("global_batch", loop.batch_size * loop.accumulation * world.size());
  facts.set("updates_per_epoch", steps.updates_per_epoch());
  if (first_step > 0) facts.set("first_step", first_step);
  made.planned_memory = planned_memory_of(job);
  made.decided = decided_settings(world, settings, steps);
  return made;
}

PrefetchOptions loader_options(const DataSettings& data, at::Device device, std::int64_t batch_bytes) {
  const auto of_workers = [&](std::int64_t num_workers, std::int64_t most_ahead) -> PrefetchOptions {
    const std::int64_t ahead = std::min(num_workers * data.prefetch_factor, most_ahead);
    return {.num_workers = static_cast<int>(num_workers), .num_ahead = std::max<std::int64_t>(1, ahead)};
  };
  constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  if (data.num_workers >= 0) return of_workers(data.num_workers, kNoLimit);
  if (device.is_cpu()) return of_workers(0, kNoLimit);
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30, kFewestAhead = 2, kMostWorkers = 16;
  const std::int64_t most_ahead = std::max(kFewestAhead, kMostBytes / std::max<std::int64_t>(1, batch_bytes));
  return of_workers(std::min({std::int64_t{at::get_num_threads()}, most_ahead, kMostWorkers}), most_ahead);
}

}  // namespace tessera
