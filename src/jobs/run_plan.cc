#include "jobs/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "comm/exchange.h"
#include "comm/gpu_support.h"
#include "core/error.h"
#include "core/log.h"
#include "core/quantity.h"
#include "core/text.h"
#include "data/loading/sampler.h"
#include "data/loading/text_batches.h"
#include "monitor/host_info.h"
#include "parallel/rank_checks.h"
#include "plan/planned_model.h"
#include "train/step_setup.h"

namespace tessera {
namespace {

constexpr std::int64_t kMostEpochs = 20;  // that are looked at: later ones hardly have a larger pass

// In a round every rank takes a batch.
std::int64_t num_rounds_of(std::int64_t num_rows, std::int64_t batch_size, std::int64_t num_ranks) {
  return (num_rows + batch_size * num_ranks - 1) / (batch_size * num_ranks);
}

// That are looked at.
std::int64_t num_epochs(const TrainSettings& settings, std::int64_t num_rows, int num_ranks) {
  const LoopSettings& loop = settings.loop;
  const std::int64_t num_rounds = settings.data.drop_last ? num_rows / (loop.batch_size * num_ranks)
                                                          : num_rounds_of(num_rows, loop.batch_size, num_ranks);
  const auto updates = static_cast<double>(std::max<std::int64_t>(1, num_rounds / loop.accumulation));
  const double epochs = loop.max_steps > 0 ? static_cast<double>(loop.max_steps) / updates : loop.num_epochs;
  return static_cast<std::int64_t>(std::clamp(std::ceil(epochs), 1.0, static_cast<double>(kMostEpochs)));
}

// The largest sum over the rows of one pass on any rank, the rows being dealt as TextTask does: an epoch's batches go
// to the ranks in turn, and `num_merged` of a rank's batches are one pass.
std::int64_t largest_sum(const std::vector<std::int64_t>& of_row, const std::vector<std::int64_t>& order,
                         std::int64_t batch_size, std::int64_t num_ranks, std::int64_t num_merged) {
  const std::int64_t num_rows = std::ssize(order), num_rounds = num_rounds_of(num_rows, batch_size, num_ranks);
  const std::int64_t sum_of_all = std::accumulate(of_row.begin(), of_row.end(), std::int64_t{0});
  std::int64_t largest = 0;
  for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
    std::int64_t sum = 0;
    for (std::int64_t round = 0; round < num_rounds; ++round) {
      if (round % num_merged == 0) sum = 0;
      const std::int64_t begin = (round * num_ranks + rank) * batch_size;
      // Several ranks fill the last round up with an epoch's first rows.
      const std::int64_t end = num_ranks == 1 ? std::min(begin + batch_size, num_rows) : begin + batch_size;
      sum += (end - begin) / num_rows * sum_of_all;
      for (std::int64_t i = begin; i < begin + (end - begin) % num_rows; ++i) {
        sum += of_row[static_cast<std::size_t>(order[static_cast<std::size_t>(i % num_rows)])];
      }
      largest = std::max(largest, sum);
    }
  }
  return largest;
}

StepShape largest_pass(const TextRows& rows, const TrainSettings& settings, const World& world, bool merges) {
  const LoopSettings& loop = settings.loop;
  const std::int64_t num_merged = merges ? loop.accumulation : 1;
  std::vector<std::int64_t> lengths, counted, sequences;
  for (std::int64_t row = 0; row < rows.size(); ++row) {
    lengths.push_back(rows.num_tokens(row));
    counted.push_back(rows.num_counted(row));
    sequences.push_back(rows.num_sequences(row));
  }
  StepShape shape;
  shape.longest = rows.longest_sequence();
  if (rows.size() == 0) return shape;
  Sampler sampler({.num_rows = rows.size(),
                   .order = settings.data.shuffle ? Order::kShuffled : Order::kSequential,
                   .seed = static_cast<std::uint64_t>(loop.data_seed)});
  for (std::int64_t epoch = 0; epoch < num_epochs(settings, rows.size(), world.size()); ++epoch) {
    sampler.start_epoch(epoch);
    const std::vector<std::int64_t> order = sampler.indices();
    const auto largest = [&](const std::vector<std::int64_t>& of_row) {
      return largest_sum(of_row, order, loop.batch_size, world.size(), num_merged);
    };
    shape.num_tokens = std::max(shape.num_tokens, PackOptions::of(world.device()).num_tokens(largest(lengths)));
    shape.num_counted = std::max(shape.num_counted, largest(counted));
    shape.num_sequences = std::max(shape.num_sequences, largest(sequences));
  }
  return shape;
}

}  // namespace

int ranks_of_node(const World& world) {
  const std::vector<int>& nodes = world.node_of_rank();
  return static_cast<int>(std::ranges::count(nodes, world.node_rank()));
}

std::optional<std::int64_t> memory_of_rank(const World& world) {
  if (world.device().is_cuda()) {
    const GpuSupport* gpus = gpu_support();
    if (gpus == nullptr) return std::nullopt;
    return gpus->info(world.device().index()).memory_bytes / 10 * 9;
  }
  const std::optional<std::int64_t> usable = read_memory_info().usable_bytes();
  return usable ? std::optional(*usable / 2 / ranks_of_node(world)) : std::nullopt;
}

PlanReport plan_of_pass(const TrainSettings& settings, const UnitModel& model, PlannedModel planned,
                        const StepShape& pass, const World& world, bool merges) {
  const TrainStepOptions step = step_options(settings, model, world.device());
  check_world(world, step.spread);
  const OptimizerChoice optimizer = choose_optimizer(settings.optimizer.optim, settings.optimizer.numbers);
  PlanReport report;
  report.model = std::move(planned);
  MemoryPlanOptions& options = report.request.options;
  options.spread = step.spread;
  options.types = {step.types.compute, step.types.reduce, settings.loop.accumulation > 1 && !merges};
  options.num_moments = num_moments_of(optimizer);
  options.num_ranks = world.size();
  // Nodes may have different sizes if nothing is sharded within a single node.
  const bool by_node = placement_of(step.spread).needs_equal_nodes() && world.num_nodes() > 1;
  options.ranks_per_node = by_node ? ranks_of_node(world) : 0;
  options.num_micro_steps = merges ? 1 : static_cast<int>(settings.loop.accumulation);
  options.checkpoints_activations = step.recomputes;
  options.on_gpu = world.device().is_cuda();
  options.buffer_bytes = report.model.buffer_bytes;
  StepShape& shape = report.request.shape;
  shape = pass;
  shape.element_bytes = static_cast<std::int64_t>(c10::elementSize(scalar_type_of(settings.precision.compute)));
  shape.on_gpu = options.on_gpu;
  report.optimizer = optimizer.optimizer->name;
  report.limit_bytes = memory_of_rank(world);
  if (settings.gpu_memory && options.on_gpu) {
    report.limit_bytes = std::min(*settings.gpu_memory, report.limit_bytes.value_or(*settings.gpu_memory));
  }
  report.rows.push_back({settings.spread.strategy, report.request, plan_memory(report.model, report.request)});
  add_advice(report);
  return report;
}

void check_plan(const World& world, const PlanReport& plan) {
  const MemoryPlan& row = plan.rows.front().plan;
  const int num_here = ranks_of_node(world);
  const double on_host =
      static_cast<double>(row.host.total() + (world.device().is_cpu() ? row.peak.total() : 0)) * num_here;
  const std::optional<std::int64_t> most = read_memory_info().most_bytes();
  if (most && on_host > static_cast<double>(*most)) {
    throw Error(fmt::format("out of memory before the first step: the {} of this host need{} {}, and it has {}; {}",
                            num_here == 1 ? "rank" : fmt::format("{} ranks", num_here), num_here == 1 ? "s" : "",
                            human_bytes(static_cast<std::int64_t>(on_host)), human_bytes(*most), memory_text(plan)),
                ExitStatus::kOutOfMemory);
  }
  const std::optional<std::int64_t> limit = usable_bytes(plan);
  if (world.rank() != 0 || !limit || plan.rows.front().plan.peak.total() <= *limit) return;
  log_warn("this run may run out of memory: {}", memory_text(plan));
}

void use_gpu_memory(TrainSettings& settings, const std::function<PlanReport()>& plan, World& world) {
  if (!settings.gpu_memory || !world.device().is_cuda()) return;
  const PlanReport report = plan();
  const std::int64_t limit = *report.limit_bytes;
  const auto most = most_units_on_device(report.model, report.request, limit).value_or(-1);
  double least = static_cast<double>(most);  // all ranks must choose the same
  for (const std::vector<double>& of_rank : gather_numbers(world, {least})) least = std::min(least, of_rank.front());
  if (least < 0) {
    throw Error(fmt::format("--gpu_memory: {} is not enough for every rank, even with everything offloaded: {}",
                            human_bytes(limit), memory_text(report)),
                ExitStatus::kOutOfMemory);
  }
  settings.spread.units_on_device = static_cast<std::int64_t>(least);
  if (world.rank() != 0) return;
  log_info("--gpu_memory: {} of {} units stay on the GPU, the root first", settings.spread.units_on_device,
           report.model.units.size());
}

bool has_planned_units(const UnitModel& model, const WrapSettings& wrap) {
  return units_to_spread(model, wrap).size() == model.units().size();
}

bool decide_merging(const TrainSettings& settings, const UnitModel& model,
                    const std::function<PlanReport()>& plan_of_merged, World& world) {
  const MergeAccumulation how = settings.loop.merge_accumulation;
  if (settings.loop.accumulation == 1 || how == MergeAccumulation::kOff) return false;
  if (how == MergeAccumulation::kOn) return true;
  const auto say = [&](bool merges, const std::string& why) {
    if (world.rank() == 0) log_info("merge_accumulation auto: {}, {}", merges ? "on" : "off", why);
    return merges;
  };
  if (!has_planned_units(model, settings.wrap)) {
    return say(false, "memory is planned for --wrap blocks only");
  }
  const PlanReport report = plan_of_merged();
  const std::int64_t needed = report.rows.front().plan.peak.total();
  const bool fits_here = report.limit_bytes && needed <= *report.limit_bytes;
  const bool fits = sum_over_ranks(world, {fits_here ? 1.0 : 0.0}).front() == world.size();
  return say(fits, fmt::format("one pass per update would take {:.1f} MiB of a rank's memory, and {}",
                               static_cast<double>(needed) / (1 << 20),
                               fits ? "every rank has it" : "not every rank is known to have it"));
}

PlanReport plan_of_rows(const TrainSettings& settings, const OpenedModel& model, const TextRows& training,
                        const World& world, bool merges) {
  PlannedModel planned = planned_language_model(*model.model, model.config, "config.json");
  const StepShape pass = largest_pass(training, settings, world, merges);
  return plan_of_pass(settings, *model.model, std::move(planned), pass, world, merges);
}

}  // namespace tessera
