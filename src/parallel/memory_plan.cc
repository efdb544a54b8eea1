#include "parallel/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/error.h"
#include "kernels/norm.h"
#include "parallel/unit_bytes.h"
#include "parallel/unit_division.h"

namespace tessera {
namespace {

constexpr std::int64_t kFloatBytes = 4, kSumBytes = 8;

using Kind = std::int64_t MemoryUse::*;

// One update, played: Engine, UnitValues, UnitGradient and ShardedOptimizer told as memory.
class Player : public MemoryTape {
 public:
  Player(const std::vector<PlannedUnit>& units, const StepMemory* step, const MemoryPlanOptions& options);

  MemoryPlan play();

  // What the model tells.
  void take(std::int64_t bytes) override { take(&MemoryUse::activations, bytes); }
  void give(std::int64_t bytes) override { give(&MemoryUse::activations, bytes); }
  void hand_over(std::int64_t numel) override;

 private:
  struct State {
    std::string name;
    FlatLayout layout;
    UnitBytes device, host;
    std::size_t num_trained = 0;
    // In this step.
    std::size_t num_missing = 0;
    bool is_whole = false, has_flat = false, adds = false;  // adds: an earlier micro-step's gradient is there
    std::int64_t incoming_bytes = 0, settled_bytes = 0;
  };
  struct Reducing {
    Kind kind;
    std::int64_t bytes;
  };

  void take(Kind kind, std::int64_t bytes);
  void give(Kind kind, std::int64_t bytes) { now_.*kind -= bytes; }
  void pass(Kind kind, std::int64_t bytes) { take(kind, bytes), give(kind, bytes); }

  std::size_t root() const { return units_.size() - 1; }
  std::size_t unit_of_turn(std::size_t turn) const { return turn == root() ? root() : root() - 1 - turn; }
  void gather(std::size_t index);
  void release(std::size_t index);
  void micro_step(bool is_last);
  void forward();
  void backward();
  void begin_reduce();
  void settle(State& unit);
  void update();

  // Where a flat gradient counts: kept whole it is the gradient, else it is on its way.
  Kind flat_kind() const { return row_.optimizer_split ? &MemoryUse::in_flight : &MemoryUse::gradients; }
  bool half_on_cpu(at::ScalarType type) const { return !options_.on_gpu && type != at::kFloat; }

  MemoryPlanOptions options_;
  const StepMemory* step_;
  Placement row_;  // as it is over so many ranks
  bool is_alone_;
  std::vector<State> units_;
  MemoryUse now_, peak_;
  std::string moment_, peak_moment_;

  bool is_last_ = true;
  std::size_t at_ = 0;         // the unit whose gradients come
  std::size_t next_turn_ = 0;  // the next reduction, the last unit's first, the root's last
  std::size_t num_settled_ = 0;
  std::deque<Reducing> reducing_;
};

int num_groups(const MemoryPlanOptions& options) {
  return options.num_ranks / num_shards_of(options);
}

Player::Player(const std::vector<PlannedUnit>& units, const StepMemory* step, const MemoryPlanOptions& options)
    : options_(options),
      step_(step),
      row_(options.placement.on(num_shards_of(options))),
      is_alone_(num_shards_of(options) == 1 && num_groups(options) == 1) {
  const int num_shards = num_shards_of(options);
  for (const PlannedUnit& unit : units) {
    const FlatLayout layout(unit.parameters, num_shards);
    State& state = units_.emplace_back(
        State{.name = unit.name,
              .layout = layout,
              .device = unit_bytes(layout, options.placement, options.types, options.num_moments),
              .host = host_unit_bytes(layout, options.placement, options.types, options.num_moments)});
    for (const FlatLayout::Entry& entry : unit.parameters) state.num_trained += entry.group != ParameterGroup::kFrozen;
  }
}

void Player::take(Kind kind, std::int64_t bytes) {
  now_.*kind += bytes;
  if (now_.total() <= peak_.total()) return;
  peak_ = now_;
  peak_moment_ = moment_;
}

MemoryPlan Player::play() {
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
  for (int i = 1; i <= options_.num_micro_steps; ++i) micro_step(i == options_.num_micro_steps);
  update();
  plan.peak = peak_;
  plan.peak_moment = peak_moment_;
  return plan;
}

void Player::gather(std::size_t index) {
  State& unit = units_[index];
  if (!row_.parameters_split || unit.is_whole) return;
  take(&MemoryUse::in_flight, unit.device.gathered);
  unit.is_whole = true;
}

void Player::release(std::size_t index) {
  State& unit = units_[index];
  if (!row_.parameters_split || !unit.is_whole) return;
  give(&MemoryUse::in_flight, unit.device.gathered);
  unit.is_whole = false;
}

void Player::micro_step(bool is_last) {
  is_last_ = is_last;
  for (State& unit : units_) unit.num_missing = unit.num_trained;
  next_turn_ = num_settled_ = 0;
  moment_ = "the root's forward";
  gather(root());
  forward();
  backward();
  moment_ = "the root's reduction";
  while (next_turn_ <= root()) begin_reduce();
  for (std::size_t i = 0; i < units_.size(); ++i) release(i);
}

void Player::forward() {
  const bool keeps = !options_.checkpoints_activations;
  if (step_ != nullptr) step_->begin_forward(*this);
  for (std::size_t i = 0; i < root(); ++i) {
    moment_ = fmt::format("forward of {}", units_[i].name);
    gather(i);
    if (options_.forward_prefetch && i + 1 < root()) gather(i + 1);
    if (step_ != nullptr) step_->unit_forward(i, keeps, *this);
    if (row_.released_after_forward && i + 1 < root()) release(i);
  }
  moment_ = "the head and its loss";
  if (step_ != nullptr) step_->end_forward(*this);
}

void Player::backward() {
  moment_ = "backward of the head";
  at_ = root();
  if (step_ != nullptr) step_->end_backward(*this);
  for (std::size_t i = root(); i-- > 0;) {
    moment_ = fmt::format("backward of {}", units_[i].name);
    at_ = i;
    gather(i);
    // A unit that is computed again is gathered first, the next when its gradients begin: the same at their largest.
    if (options_.backward_prefetch == BackwardPrefetch::kPre && i > 0) gather(i - 1);
    if (step_ == nullptr) {
      if (!units_[i].has_flat) take(flat_kind(), units_[i].device.flat_gradient), units_[i].has_flat = true;
    } else if (options_.checkpoints_activations) {
      recompute_and_backward(*step_, i, *this);
    } else {
      step_->unit_backward(i, /*gradient_is_held=*/false, *this);
    }
    while (step_ == nullptr && next_turn_ < root() && unit_of_turn(next_turn_) >= i) begin_reduce();
    release(i);
    if (options_.backward_prefetch == BackwardPrefetch::kPost && i > 0) gather(i - 1);
  }
  moment_ = "the root's gradients";
  at_ = root();
  if (step_ != nullptr) step_->begin_backward(*this);
}

void Player::hand_over(std::int64_t numel) {
  State& unit = units_[at_];
  if (!unit.has_flat) {
    take(flat_kind(), unit.device.flat_gradient);
    unit.has_flat = true;
  }
  // Numbers of two types are added by way of a converted copy.
  if (unit.adds && half_on_cpu(options_.types.compute)) pass(&MemoryUse::in_flight, numel * kFloatBytes);
  give(numel * static_cast<std::int64_t>(c10::elementSize(options_.types.compute)));
  if (at_ == root() || unit.num_missing == 0 || --unit.num_missing > 0) return;
  while (next_turn_ < root() && units_[unit_of_turn(next_turn_)].num_missing == 0) begin_reduce();
}

void Player::begin_reduce() {
  const std::size_t turn = next_turn_++;
  State& unit = units_[unit_of_turn(turn)];
  while (num_settled_ + static_cast<std::size_t>(std::max(options_.num_reducing, 1)) <= turn) {
    settle(units_[unit_of_turn(num_settled_++)]);
  }
  if (!unit.has_flat) take(flat_kind(), unit.device.flat_gradient);
  unit.has_flat = true;
  if (!row_.gradients_split && !is_last_) {
    unit.adds = true;
    return;
  }
  settle(unit);  // the micro-step before
  const std::int64_t reduce_bytes = static_cast<std::int64_t>(c10::elementSize(options_.types.reduce));
  const std::int64_t whole_bytes = unit.layout.padded_numel() * reduce_bytes;
  const bool converts = unit.device.flat_gradient != whole_bytes;
  // Whether this rank's own sum is finite; half types are converted for it.
  if (!is_alone_ && half_on_cpu(options_.types.reduce) && !converts) {
    pass(flat_kind(), unit.layout.padded_numel() * kFloatBytes);
  }
  if (converts) take(flat_kind(), whole_bytes), give(flat_kind(), unit.device.flat_gradient);
  unit.has_flat = unit.adds = false;
  if (!row_.optimizer_split) {
    unit.incoming_bytes = whole_bytes;
    return;
  }
  unit.incoming_bytes = unit.layout.shard_numel() * reduce_bytes;
  take(&MemoryUse::gradients, unit.incoming_bytes);
  reducing_.push_back({flat_kind(), whole_bytes});
  while (reducing_.size() > static_cast<std::size_t>(options_.num_reducing)) {
    give(reducing_.front().kind, reducing_.front().bytes);
    reducing_.pop_front();
  }
}

void Player::settle(State& unit) {
  if (unit.incoming_bytes == 0) return;
  const std::int64_t reduce_bytes = static_cast<std::int64_t>(c10::elementSize(options_.types.reduce));
  const std::int64_t float_bytes = unit.incoming_bytes / reduce_bytes * kFloatBytes;
  if (unit.settled_bytes > 0) {
    if (half_on_cpu(options_.types.reduce)) pass(&MemoryUse::gradients, float_bytes);
    give(&MemoryUse::gradients, unit.incoming_bytes);
  } else if (options_.types.accumulates && float_bytes != unit.incoming_bytes) {
    take(&MemoryUse::gradients, unit.settled_bytes = float_bytes);
    give(&MemoryUse::gradients, unit.incoming_bytes);
  } else {
    unit.settled_bytes = unit.incoming_bytes;
  }
  unit.incoming_bytes = 0;
  if (is_last_ && row_.offload_optimizer) give(&MemoryUse::gradients, std::exchange(unit.settled_bytes, 0));
}

void Player::update() {
  moment_ = "the update";
  for (State& unit : units_) settle(unit);
  for (const Reducing& one : reducing_) give(one.kind, one.bytes);
  reducing_.clear();
  // Sums of squares of each unit's blocks, one after another, from all ranks.
  std::int64_t sums_bytes = 0;
  for (const State& unit : units_) {
    const std::int64_t numel = row_.optimizer_split ? unit.layout.shard_numel() : unit.layout.padded_numel();
    sums_bytes += numel / kernels::kNormBlock * kSumBytes;
  }
  const int num_parts = row_.optimizer_split ? num_shards_of(options_) : 1;
  pass(&MemoryUse::in_flight, sums_bytes * (num_parts > 1 ? 2 + num_parts : 2));
  for (State& unit : units_) give(&MemoryUse::gradients, std::exchange(unit.settled_bytes, 0));
}

}  // namespace

std::vector<PlannedUnit> planned_units(torch::nn::Module& model, const std::vector<Unit>& units,
                                       const std::function<bool(const std::string&)>& is_exempt_from_decay) {
  const auto of_unit = divide(model, units, is_exempt_from_decay);
  std::vector<PlannedUnit> planned;
  for (std::size_t i = 0; i < of_unit.size(); ++i) {
    PlannedUnit& unit = planned.emplace_back(PlannedUnit{i < units.size() ? units[i].name : "root", {}});
    for (const UnitParameter& p : of_unit[i]) unit.parameters.push_back({p.name, p.parameter.sizes().vec(), p.group});
  }
  return planned;
}

int num_shards_of(const MemoryPlanOptions& options) {
  const int per_node = options.ranks_per_node == 0 ? options.num_ranks : options.ranks_per_node;
  switch (options.placement.over) {
    case ShardOver::kNobody:
      return 1;
    case ShardOver::kWorld:
      return options.num_ranks;
    case ShardOver::kNode:
      return std::min(per_node, options.num_ranks);
  }
  return 1;
}

MemoryPlan plan_memory(const std::vector<PlannedUnit>& units, const StepMemory* step,
                       const MemoryPlanOptions& options) {
  if (options.num_ranks < 1) throw UsageError(fmt::format("{} ranks: at least 1 is needed", options.num_ranks));
  if (options.num_micro_steps < 1) {
    throw UsageError(fmt::format("{} micro-steps an update: at least 1 is needed", options.num_micro_steps));
  }
  if (options.ranks_per_node < 0 || options.ranks_per_node > options.num_ranks ||
      (options.ranks_per_node > 0 && options.num_ranks % options.ranks_per_node != 0)) {
    throw UsageError(fmt::format("{} ranks a node do not make {} ranks: nodes must be alike", options.ranks_per_node,
                                 options.num_ranks));
  }
  if (options.placement.over == ShardOver::kNobody && options.num_ranks > 1) {
    throw UsageError(fmt::format("strategy 'single' is for one rank, and there are {}", options.num_ranks));
  }
  if (units.empty() || (step != nullptr && step->num_units() + 1 != units.size())) {
    throw Error("a memory plan needs the units that the model's step has, and the root");
  }
  return Player(units, step, options).play();
}

}  // namespace tessera
