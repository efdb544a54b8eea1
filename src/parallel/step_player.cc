#include "parallel/step_player.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "kernels/flat_buffers.h"

namespace tessera {
namespace {

constexpr std::int64_t kSumBytes = 8;
// libtorch gives cuBLAS 32 MiB on Hopper (8 on earlier GPUs) at the first matrix product: once for the thread of the
// forward pass, once for that of backward.
constexpr std::int64_t kGpuWorkspaceBytes = std::int64_t{2} * 32 << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;  // one more operator's bytes still fit in 64 bits

}  // namespace

StepPlayer::StepPlayer(const std::vector<PlannedUnit>& units, const StepMemory* step, const MemoryPlanOptions& options)
    : options_(options),
      step_(step),
      row_(planned_placement(options).in_shards(num_shards_of(options))),
      has_replicas_(row_.reduced_over() == Over::kNode && num_shards_of(options) < options.num_ranks) {
  is_alone_ = num_shards_of(options) == 1 && !has_replicas_;
  const int num_shards = num_shards_of(options);
  for (const PlannedUnit& unit : units) {
    const FlatLayout layout(unit.parameters, num_shards);
    const Placement placement =
        placement_of_unit(planned_placement(options), options.spread, units_.size(), units.size());
    State& state = units_.emplace_back(State{
        .name = unit.name,
        .layout = layout,
        .row = placement.in_shards(num_shards),
        .device =
            unit_bytes(layout, placement, options.types, options.num_moments, ranks_of_node(options), options.on_gpu),
        .host = host_unit_bytes(layout, placement, options.types, options.num_moments, options.on_gpu)});
    for (const FlatLayout::Entry& entry : unit.parameters) state.num_trained += entry.group != ParameterGroup::kFrozen;
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

void StepPlayer::gather(std::size_t index) {
  State& unit = units_[index];
  if (!unit.row.parameters.is_split() || unit.is_whole) return;
  take(&MemoryUse::in_flight, unit.device.gathered);
  unit.is_whole = true;
}

void StepPlayer::release(std::size_t index) {
  State& unit = units_[index];
  if (!unit.row.parameters.is_split() || !unit.is_whole) return;
  give(&MemoryUse::in_flight, unit.device.gathered);
  unit.is_whole = false;
}

void StepPlayer::release_until_backward(std::size_t index) {
  State& unit = units_[index];
  if (!std::exchange(unit.has_second_copy, true)) take(&MemoryUse::in_flight, unit.device.second_copy);
  release(index);
}

void StepPlayer::micro_step(bool is_last) {
  is_last_ = is_last;
  for (State& unit : units_) unit.num_missing = unit.num_trained;
  next_turn_ = num_waited_ = 0;
  moment_ = "the root's forward";
  gather(root());
  forward();
  backward();
  moment_ = "the root's reduction";
  while (next_turn_ <= root()) begin_reduce();
  for (std::size_t i = 0; i < root(); ++i) release(i);
  if (is_last) release(root());
}

void StepPlayer::forward() {
  const bool keeps = !options_.checkpoints_activations;
  if (step_ != nullptr) step_->begin_forward(*this);
  for (std::size_t i = 0; i < root(); ++i) {
    moment_ = fmt::format("forward of {}", units_[i].name);
    gather(i);
    if (options_.spread.forward_prefetch && i + 1 < root()) gather(i + 1);
    if (step_ != nullptr) step_->unit_forward(i, keeps, *this);
    if (row_.released_after_forward && i + 1 < root()) release_until_backward(i);
  }
  moment_ = "the head and its loss";
  if (step_ != nullptr) step_->end_forward(*this);
}

void StepPlayer::backward() {
  moment_ = "backward of the head";
  at_ = root();
  if (step_ != nullptr) step_->end_backward(*this);
  for (std::size_t i = root(); i-- > 0;) {
    moment_ = fmt::format("backward of {}", units_[i].name);
    at_ = i;
    gather(i);
    // A recomputed unit is gathered first, and the next unit when its gradients start: the peak is the same.
    if (options_.spread.backward_prefetch == BackwardPrefetch::kPre && i > 0) gather(i - 1);
    if (step_ == nullptr) {
      make_flat(units_[i]);
    } else if (options_.checkpoints_activations) {
      recompute_and_backward(*step_, i, *this);
    } else {
      step_->unit_backward(i, /*gradient_is_held=*/false, *this);
    }
    while (step_ == nullptr && next_turn_ < root() && unit_of_turn(next_turn_) >= i) begin_reduce();
    release(i);
    if (options_.spread.backward_prefetch == BackwardPrefetch::kPost && i > 0) gather(i - 1);
  }
  moment_ = "the root's gradients";
  at_ = root();
  if (step_ != nullptr) step_->begin_backward(*this);
}

// As UnitGradient::room() decides: on a GPU, the first gradient, if it has the type of the flat one.
void StepPlayer::hand_over_in_place(std::int64_t numel) {
  const State& unit = units_[at_];
  const bool adds_whole = options_.types.accumulates && !unit.row.gradients.is_split();
  const at::ScalarType flat = adds_whole ? at::kFloat : options_.types.reduce;
  hand_over(numel, options_.on_gpu && !unit.adds && flat == options_.types.compute);
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
  while (next_turn_ < root() && units_[unit_of_turn(next_turn_)].num_missing == 0) begin_reduce();
}

void StepPlayer::move_waiting(State& unit) {
  make_flat(unit);
  pass(&MemoryUse::in_flight, std::exchange(unit.largest_waiting, 0));
  give(std::exchange(unit.waiting_bytes, 0));
  unit.waiting_numel = 0;
}

void StepPlayer::begin_reduce() {
  const std::size_t turn = next_turn_++;
  State& unit = units_[unit_of_turn(turn)];
  // A reduction has one unit's backward to complete, or two if it continues across nodes.
  const std::size_t end = has_replicas_ && turn > 0 ? turn - 1 : turn;
  while (num_waited_ < end) wait_reduce(units_[unit_of_turn(num_waited_++)]);
  move_waiting(unit);
  if (!unit.row.gradients.is_split() && !is_last_) {
    unit.adds = true;
    return;
  }
  wait_reduce(unit);  // of the previous micro-step
  if (!is_alone_)
    pass(flat_kind(unit), unit.layout.num_blocks() * kSumBytes);  // whether this rank's own gradient is finite
  const std::int64_t whole_bytes = unit.layout.padded_numel() * reduce_bytes();
  if (unit.device.flat_gradient != whole_bytes) {
    take(flat_kind(unit), whole_bytes);
    give(flat_kind(unit), unit.device.flat_gradient);
  }
  unit.has_flat = unit.adds = false;
  if (!unit.row.optimizer.is_split()) {
    unit.incoming_bytes = whole_bytes;
    return;
  }
  unit.incoming_bytes = unit.layout.shard_numel() * reduce_bytes();
  take(&MemoryUse::gradients, unit.incoming_bytes);
  unit.reducing_bytes = whole_bytes;
  if (!options_.reductions_take_time) give(flat_kind(unit), std::exchange(unit.reducing_bytes, 0));
}

void StepPlayer::make_flat(State& unit) {
  if (std::exchange(unit.has_flat, true)) return;
  take(flat_kind(unit), unit.device.flat_gradient);
}

void StepPlayer::wait_reduce(State& unit) {
  give(flat_kind(unit), std::exchange(unit.reducing_bytes, 0));
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
  if (is_last_ && unit.row.optimizer.is_on_host()) give(&MemoryUse::gradients, std::exchange(unit.reduced_bytes, 0));
}

void StepPlayer::update() {
  moment_ = "the update";
  for (State& unit : units_) wait_reduce(unit);
  // Sums of squares of all units' blocks, from all ranks.
  std::int64_t sums_bytes = 0;
  for (const State& unit : units_) {
    const std::int64_t numel = unit.row.optimizer.is_split() ? unit.layout.shard_numel() : unit.layout.padded_numel();
    sums_bytes += numel / kernels::kNormBlock * kSumBytes;
  }
  const int num_parts = row_.optimizer.is_split() ? num_shards_of(options_) : 1;
  pass(&MemoryUse::in_flight, sums_bytes * (num_parts > 1 ? 2 + num_parts : 2));
  for (State& unit : units_) {
    give(&MemoryUse::gradients, std::exchange(unit.reduced_bytes, 0));
    if (std::exchange(unit.has_second_copy, false)) give(&MemoryUse::in_flight, unit.device.second_copy);
  }
}

}  // namespace tessera
