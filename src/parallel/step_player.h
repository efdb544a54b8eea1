// Simulates one update for plan_memory: the memory that Engine, UnitValues, UnitGradient and ShardedOptimizer take and
// free, in their order, interleaved with a model's StepMemory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "parallel/memory_plan.h"
#include "parallel/unit_bytes.h"

namespace tessera {

class StepPlayer : public MemoryTape {
 public:
  // `units` and `step` must outlive it; `step` may be null.
  StepPlayer(const std::vector<PlannedUnit>& units, const StepMemory* step, const MemoryPlanOptions& options);

  MemoryPlan play();

  // Called by the model.
  void take(std::int64_t bytes) override { take(&MemoryUse::activations, bytes); }
  void give(std::int64_t bytes) override { give(&MemoryUse::activations, bytes); }
  void hand_over(std::int64_t numel) override { hand_over(numel, /*in_place=*/false); }
  void hand_over_in_place(std::int64_t numel) override;

 private:
  using Kind = std::int64_t MemoryUse::*;
  struct State {
    std::string name;
    FlatLayout layout;
    Placement row;  // adapted to this number of ranks
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
  };
  void take(Kind kind, std::int64_t bytes);
  void give(Kind kind, std::int64_t bytes) { now_.*kind -= bytes; }
  void pass(Kind kind, std::int64_t bytes) { take(kind, bytes), give(kind, bytes); }

  std::size_t root() const { return units_.size() - 1; }
  std::size_t unit_of_turn(std::size_t turn) const { return turn == root() ? root() : root() - 1 - turn; }
  void gather(std::size_t index);
  void release(std::size_t index);
  void release_until_backward(std::size_t index);
  void micro_step(bool is_last);
  void forward();
  void backward();
  void begin_reduce();
  void hand_over(std::int64_t numel, bool in_place);
  void move_waiting(State& unit);
  void make_flat(State& unit);
  void wait_reduce(State& unit);
  void update();

  // What a flat gradient counts as: a gradient if it is kept whole, else in flight.
  static Kind flat_kind(const State& unit) {
    return unit.row.optimizer.is_split() ? &MemoryUse::in_flight : &MemoryUse::gradients;
  }
  std::int64_t reduce_bytes() const { return static_cast<std::int64_t>(c10::elementSize(options_.types.reduce)); }
  bool half_on_cpu(at::ScalarType type) const { return !options_.on_gpu && type != at::kFloat; }

  MemoryPlanOptions options_;
  const StepMemory* step_;
  Placement row_;  // of units that are not kept on the device
  bool is_alone_, has_replicas_;
  std::vector<State> units_;
  MemoryUse now_, peak_;
  std::string moment_, peak_moment_;

  bool is_last_ = true;
  std::size_t at_ = 0;         // the unit whose gradients are being computed
  std::size_t next_turn_ = 0;  // the next reduction: last unit to first, then the root
  std::size_t num_waited_ = 0;
};

}  // namespace tessera
