#include "plan/memory_plan.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "kernels/flat_buffers.h"
#include "parallel/unit_layout.h"
#include "parallel/unit_schedule.h"

namespace tessera {
namespace {

constexpr std::int64_t kSumBytes = 8;
// libtorch gives cuBLAS 32 MiB on Hopper (8 on earlier GPUs) at the first matrix product: once for the thread of the
// forward pass, once for that of backward.
constexpr std::int64_t kGpuWorkspaceBytes = std::int64_t{2} * 32 << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;  // one more operator's bytes still fit in 64 bits

// Plays one update: the schedule's verbs take and free what UnitValues and UnitGradient would.
class StepPlayer : private MemoryTape, private UnitVerbs {
 public:
  StepPlayer(const std::vector<PlannedUnit>& units, const StepMemory* step, const MemoryPlanOptions& options);

  MemoryPlan play();

 private:
  using Kind = std::int64_t MemoryUse::*;
  struct State {
    std::string name;
    FlatLayout layout;
    Placement row;  // adapted to this number of shards
    UnitBytes device, host;
    std::size_t num_trained = 0;
    // In this step.
    std::size_t num_missing = 0;
    bool is_whole = false, has_flat = false, adds = false;  // adds: onto an earlier micro-step's gradient
    bool has_second_copy = false;
    std::int64_t reducing_bytes = 0;                    // a flat gradient that a reduction still reads
    std::int64_t waiting_numel = 0, waiting_bytes = 0;  // small gradients that wait for each other
    std::int64_t largest_waiting = 0;                   // what the largest of them takes while it is added
    std::int64_t incoming_bytes = 0, reduced_bytes = 0;

    // What a flat gradient counts as: a gradient if it is kept whole, else in flight.
    Kind flat_kind() const { return row.optimizer.is_split() ? &MemoryUse::in_flight : &MemoryUse::gradients; }
  };

  // Called by the model.
  void take(std::int64_t bytes) override { take(&MemoryUse::activations, bytes); }
  void give(std::int64_t bytes) override { give(&MemoryUse::activations, bytes); }
  void hand_over(std::int64_t numel) override { hand_over(numel, /*in_place=*/false); }
  void hand_over_in_place(std::int64_t numel) override;

  // Called by the schedule.
  void begin_gather(std::size_t index) override;
  void wait_gather(std::size_t) override {}
  void release(std::size_t index) override;
  void release_until_backward(std::size_t index) override;
  void begin_reduce(std::size_t index, bool last_micro_step) override;
  void continue_reduce(std::size_t) override {}
  void wait_reduce(std::size_t index) override { wait_reduce(units_[index]); }

  void take(Kind kind, std::int64_t bytes);
  void give(Kind kind, std::int64_t bytes) { now_.*kind -= bytes; }
  void pass(Kind kind, std::int64_t bytes) { take(kind, bytes), give(kind, bytes); }

  void micro_step(bool is_last);
  void forward();
  void backward(bool is_last);
  void hand_over(std::int64_t numel, bool in_place);
  void move_waiting(State& unit);
  void make_flat(State& unit);
  void wait_reduce(State& unit);
  void update();

  std::size_t root() const { return schedule_.root(); }
  std::int64_t reduce_bytes() const { return static_cast<std::int64_t>(c10::elementSize(options_.types.reduce)); }
  bool half_on_cpu(at::ScalarType type) const { return !options_.on_gpu && type != at::kFloat; }

  const MemoryPlanOptions& options_;
  const StepMemory* step_;  // null: no activations
  Placement row_;           // of units that are not kept on the device
  bool has_replicas_;
  UnitSchedule schedule_;
  std::vector<State> units_;
  MemoryUse now_, peak_;
  std::string moment_, peak_moment_;
  std::size_t at_ = 0;  // the unit whose gradients are being computed
};

StepPlayer::StepPlayer(const std::vector<PlannedUnit>& units, const StepMemory* step, const MemoryPlanOptions& options)
    : options_(options),
      step_(step),
      row_(options.placement()),
      has_replicas_(row_.reduced_over() == Over::kNode && options.num_shards() < options.num_ranks),
      schedule_(options.spread, row_, has_replicas_, units.size(), *this) {
  const int num_shards = options.num_shards();
  for (const PlannedUnit& unit : units) {
    const FlatLayout layout(unit.parameters, num_shards);
    const Placement placement = placement_of_unit(row_, options.spread, units_.size(), units.size());
    State& state = units_.emplace_back(State{
        .name = unit.name,
        .layout = layout,
        .row = placement.in_shards(num_shards),
        .device =
            unit_bytes(layout, placement, options.types, options.num_moments, options.node_size(), options.on_gpu),
        .host = host_unit_bytes(layout, placement, options.types, options.num_moments, options.on_gpu)});
    for (const FlatLayout::Entry& entry : unit.parameters) state.num_trained += entry.group != ParameterGroup::kFrozen;
    if (state.num_trained == 0) schedule_.set_untrained(units_.size() - 1);
  }
}

void StepPlayer::take(Kind kind, std::int64_t bytes) {
  now_.*kind += bytes;
  if (now_.total() <= peak_.total()) return;
  if (now_.total() > kMostBytes) {
    throw Error(fmt::format("{}: a step of this size takes more than an exbibyte (2^60 bytes) of memory: use a smaller "
                            "batch or shorter sequences",
                            moment_),
                ExitStatus::kOutOfMemory);
  }
  peak_ = now_;
  peak_moment_ = moment_;
}

MemoryPlan StepPlayer::play() {
  MemoryPlan plan;
  moment_ = "between steps";
  take(&MemoryUse::parameters, options_.buffer_bytes);
  for (const State& unit : units_) {
    take(&MemoryUse::parameters, unit.device.parameters);
    take(&MemoryUse::optimizer, unit.device.master + unit.device.moments);
    plan.host.parameters += unit.host.parameters;
    plan.host.optimizer += unit.host.master + unit.host.moments;
    plan.host.gradients += unit.host.gradient;
  }
  plan.resident = now_;
  moment_ = "a product's workspace";
  if (options_.on_gpu && step_ != nullptr) take(kGpuWorkspaceBytes);
  // Between the first and the last micro-step all are alike: one is enough.
  const int num_played = std::min(options_.num_micro_steps, 3);
  for (int i = 1; i <= num_played; ++i) micro_step(i == num_played);
  update();
  plan.peak = peak_;
  plan.peak_moment = peak_moment_;
  return plan;
}

void StepPlayer::micro_step(bool is_last) {
  for (State& unit : units_) unit.num_missing = unit.num_trained;
  moment_ = "the root's forward";
  schedule_.begin_pass();
  forward();
  backward(is_last);
  moment_ = "the root's reduction";
  schedule_.end_backward();
}

void StepPlayer::forward() {
  const bool keeps = !options_.checkpoints_activations;
  if (step_ != nullptr) step_->begin_forward(*this);
  for (std::size_t i = 0; i < root(); ++i) {
    moment_ = fmt::format("forward of {}", units_[i].name);
    schedule_.begin_forward(i);
    if (step_ != nullptr) step_->unit_forward(i, keeps, *this);
    schedule_.end_forward(i, /*has_backward=*/true);
  }
  moment_ = "the head and its loss";
  if (step_ != nullptr) step_->end_forward(*this);
}

void StepPlayer::backward(bool is_last) {
  moment_ = "backward of the head";
  schedule_.begin_backward(is_last);
  at_ = root();
  if (step_ != nullptr) step_->end_backward(*this);
  for (std::size_t i = root(); i-- > 0;) {
    moment_ = fmt::format("backward of {}", units_[i].name);
    at_ = i;
    // A recomputed unit is gathered first, and the next unit when its gradients start: the peak is the same.
    schedule_.begin_unit_backward(i);
    if (step_ == nullptr) {
      make_flat(units_[i]);
      schedule_.gradient_is_complete(i);
    } else if (options_.checkpoints_activations) {
      recompute_and_backward(*step_, i, *this);
    } else {
      step_->unit_backward(i, /*gradient_is_held=*/false, *this);
    }
    schedule_.end_unit_backward(i);
  }
  moment_ = "the root's gradients";
  at_ = root();
  if (step_ != nullptr) step_->begin_backward(*this);
}

void StepPlayer::begin_gather(std::size_t index) {
  State& unit = units_[index];
  if (!unit.row.parameters.is_split() || std::exchange(unit.is_whole, true)) return;
  take(&MemoryUse::in_flight, unit.device.gathered);
}

void StepPlayer::release(std::size_t index) {
  State& unit = units_[index];
  if (!unit.row.parameters.is_split() || !std::exchange(unit.is_whole, false)) return;
  give(&MemoryUse::in_flight, unit.device.gathered);
}

void StepPlayer::release_until_backward(std::size_t index) {
  State& unit = units_[index];
  if (!std::exchange(unit.has_second_copy, true)) take(&MemoryUse::in_flight, unit.device.second_copy);
  release(index);
}

// As UnitGradient::room() decides: on a GPU, the first gradient, if it has the type of the flat one.
void StepPlayer::hand_over_in_place(std::int64_t numel) {
  const State& unit = units_[at_];
  const bool has_room = options_.types.of_flat_gradient(unit.row) == options_.types.compute;
  hand_over(numel, options_.on_gpu && !unit.adds && has_room);
}

void StepPlayer::hand_over(std::int64_t numel, bool in_place) {
  State& unit = units_[at_];
  const std::int64_t bytes = numel * static_cast<std::int64_t>(c10::elementSize(options_.types.compute));
  // Adding numbers of two types needs a converted copy.
  const auto convert = unit.adds && half_on_cpu(options_.types.compute) ? numel * kFloatBytes : 0;
  if (unit.layout.is_small_part(numel)) {
    unit.waiting_numel += numel;
    unit.waiting_bytes += bytes;
    unit.largest_waiting = std::max(unit.largest_waiting, convert);
    if (!unit.layout.is_small_part(unit.waiting_numel)) move_waiting(unit);
  } else {
    if (in_place) give(bytes);
    make_flat(unit);
    pass(&MemoryUse::in_flight, convert);
    if (!in_place) give(bytes);
  }
  if (at_ == root() || unit.num_missing == 0 || --unit.num_missing > 0) return;
  schedule_.gradient_is_complete(at_);
}

void StepPlayer::move_waiting(State& unit) {
  make_flat(unit);
  pass(&MemoryUse::in_flight, std::exchange(unit.largest_waiting, 0));
  give(std::exchange(unit.waiting_bytes, 0));
  unit.waiting_numel = 0;
}

void StepPlayer::make_flat(State& unit) {
  if (std::exchange(unit.has_flat, true)) return;
  take(unit.flat_kind(), unit.device.flat_gradient);
}

void StepPlayer::begin_reduce(std::size_t index, bool last_micro_step) {
  State& unit = units_[index];
  move_waiting(unit);
  if (!unit.row.reduces_in(last_micro_step)) {
    unit.adds = true;
    return;
  }
  wait_reduce(unit);  // of the previous micro-step
  // Whether this rank's own gradient is finite.
  const bool is_alone = options_.num_shards() == 1 && !has_replicas_;
  if (!is_alone) pass(unit.flat_kind(), unit.layout.num_blocks() * kSumBytes);
  const std::int64_t whole_bytes = unit.layout.padded_numel() * reduce_bytes();
  if (unit.device.flat_gradient != whole_bytes) {
    take(unit.flat_kind(), whole_bytes);
    give(unit.flat_kind(), unit.device.flat_gradient);
  }
  unit.has_flat = unit.adds = false;
  if (!unit.row.optimizer.is_split()) {
    unit.incoming_bytes = whole_bytes;
    return;
  }
  unit.incoming_bytes = unit.layout.shard_numel() * reduce_bytes();
  take(&MemoryUse::gradients, unit.incoming_bytes);
  unit.reducing_bytes = whole_bytes;
  if (!options_.reductions_take_time) give(unit.flat_kind(), std::exchange(unit.reducing_bytes, 0));
}

void StepPlayer::wait_reduce(State& unit) {
  give(unit.flat_kind(), std::exchange(unit.reducing_bytes, 0));
  if (unit.incoming_bytes == 0) return;
  const std::int64_t float_bytes = unit.incoming_bytes / reduce_bytes() * kFloatBytes;
  if (unit.reduced_bytes > 0) {
    if (half_on_cpu(options_.types.reduce)) pass(&MemoryUse::gradients, float_bytes);
    give(&MemoryUse::gradients, unit.incoming_bytes);
  } else if (options_.types.accumulates && float_bytes != unit.incoming_bytes) {
    take(&MemoryUse::gradients, unit.reduced_bytes = float_bytes);
    give(&MemoryUse::gradients, unit.incoming_bytes);
  } else {
    unit.reduced_bytes = unit.incoming_bytes;
  }
  unit.incoming_bytes = 0;
  if (!schedule_.is_last_micro_step() || !unit.row.optimizer.is_on_host()) return;
  give(&MemoryUse::gradients, std::exchange(unit.reduced_bytes, 0));
}

void StepPlayer::update() {
  moment_ = "the update";
  schedule_.finish_reductions();
  // Sums of squares of all units' blocks, from all ranks.
  std::int64_t sums_bytes = 0;
  for (const State& unit : units_) {
    const std::int64_t numel = unit.row.optimizer.is_split() ? unit.layout.shard_numel() : unit.layout.padded_numel();
    sums_bytes += numel / kernels::kNormBlock * kSumBytes;
  }
  const int num_parts = row_.in_shards(options_.num_shards()).optimizer.is_split() ? options_.num_shards() : 1;
  pass(&MemoryUse::in_flight, sums_bytes * (num_parts > 1 ? 2 + num_parts : 2));
  for (State& unit : units_) {
    give(&MemoryUse::gradients, std::exchange(unit.reduced_bytes, 0));
    if (std::exchange(unit.has_second_copy, false)) give(&MemoryUse::in_flight, unit.device.second_copy);
  }
}

}  // namespace

Placement MemoryPlanOptions::placement() const {
  const Placement placement = placement_of(spread).on_nodes_of(node_size(), num_ranks);
  return on_gpu || host_memory_is_separate ? placement : placement.on_device_alone();
}

int MemoryPlanOptions::num_shards() const {
  switch (placement_of(spread).reduced_over()) {
    case Over::kNobody:
      return 1;
    case Over::kWorld:
      return num_ranks;
    case Over::kNode:
      return std::min(node_size(), num_ranks);
  }
  return 1;
}

MemoryPlan plan_memory(const std::vector<PlannedUnit>& units, const StepMemory* step,
                       const MemoryPlanOptions& options) {
  if (options.num_ranks < 1) throw UsageError(fmt::format("{} ranks: at least 1 is needed", options.num_ranks));
  if (options.num_micro_steps < 1) {
    throw UsageError(fmt::format("{} micro-steps per update: at least 1 is needed", options.num_micro_steps));
  }
  if (options.ranks_per_node < 0 || options.ranks_per_node > options.num_ranks ||
      (options.ranks_per_node > 0 && options.num_ranks % options.ranks_per_node != 0)) {
    throw UsageError(fmt::format("{} ranks per node cannot make {} ranks: every node needs the same number",
                                 options.ranks_per_node, options.num_ranks));
  }
  if (placement_of(options.spread).is_for_one_rank && options.num_ranks > 1) {
    throw UsageError(
        fmt::format("strategy '{}' is for one rank, but there are {}", options.spread.strategy, options.num_ranks));
  }
  if (units.empty() || (step != nullptr && step->num_units() + 1 != units.size())) {
    throw Error("a memory plan needs exactly the units of the model's step, and the root");
  }
  return StepPlayer(units, step, options).play();
}

MemoryPlan plan_memory(const PlannedModel& model, const PlanRequest& request) {
  const auto step = model.make_step ? model.make_step(request.shape) : nullptr;
  return plan_memory(model.units, step.get(), request.options);
}

}  // namespace tessera
