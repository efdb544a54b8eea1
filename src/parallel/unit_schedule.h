// The order of a step: which unit is gathered, prefetched, released, reduced and updated when. (no torch)
//
// Whoever runs the model says what happens, and the schedule answers with verbs: the engine carries them out, the
// memory plan counts their bytes, a test writes them down. Units are numbered in the order of forward; the root, which
// the whole step needs, comes last.
//
//   schedule.begin_pass();
//   for each unit: begin_forward(i), [it computes,] end_forward(i, true)
//   schedule.begin_backward(/*last_micro_step=*/true);
//   for each unit from the last: begin_unit_backward(i), [it computes,] gradient_is_complete(i), end_unit_backward(i)
//   schedule.end_backward();
//   schedule.finish_reductions();
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/placement.h"

namespace tessera {

class UnitVerbs {
 public:
  virtual ~UnitVerbs() = default;

  virtual void begin_gather(std::size_t unit) = 0;  // nothing if the unit is whole or on its way
  virtual void wait_gather(std::size_t unit) = 0;
  virtual void release(std::size_t unit) = 0;                 // nothing unless its row splits parameters
  virtual void release_until_backward(std::size_t unit) = 0;  // the same, keeping what backward gathers from
  // A row with whole gradients reduces in the last micro-step only: Placement::reduces_in.
  virtual void begin_reduce(std::size_t unit, bool last_micro_step) = 0;
  virtual void continue_reduce(std::size_t unit) = 0;  // across nodes
  virtual void wait_reduce(std::size_t unit) = 0;
};

class UnitSchedule {
 public:
  // `across_nodes`: a reduction within the node continues across nodes. `verbs` must outlive the schedule.
  UnitSchedule(const SpreadOptions& options, const Placement& placement, bool across_nodes, std::size_t num_units,
               UnitVerbs& verbs);

  // No parameter of the unit is trained: no gradient of it will come.
  void set_untrained(std::size_t unit) { is_trained_[unit] = false; }

  void begin_pass() { gather(root()); }
  void begin_forward(std::size_t unit);
  // `has_backward`: a backward follows.
  void end_forward(std::size_t unit, bool has_backward);
  void recompute(std::size_t unit) { gather(unit); }  // in backward

  void begin_backward(bool last_micro_step);
  void begin_unit_backward(std::size_t unit);
  // May be called in any order; a unit for which it is not called is reduced by end_backward.
  void gradient_is_complete(std::size_t unit);
  void end_unit_backward(std::size_t unit);
  void end_backward();
  void finish_reductions() { wait_for_reductions_until(next_turn_); }

  bool is_last_micro_step() const { return last_micro_step_; }
  bool has_begun_reduction(std::size_t unit) const { return turn_of(unit) < next_turn_; }  // in this backward

  std::size_t root() const { return num_units_ - 1; }
  // Reductions are counted by their turn: last unit to first, then the root.
  std::size_t unit_of_turn(std::size_t turn) const { return turn < root() ? root() - 1 - turn : root(); }
  std::size_t turn_of(std::size_t unit) const { return unit_of_turn(unit); }  // the same arithmetic
  // Updates in the order in which the next step needs the units.
  std::size_t unit_of_update(std::size_t place) const;

 private:
  void gather(std::size_t unit);
  void begin_reduce();  // of the unit whose turn it is
  void wait_for_reductions_until(std::size_t turn);

  bool prefetches_forward_, releases_after_forward_, across_nodes_, delays_updates_;
  BackwardPrefetch backward_prefetch_;
  std::size_t num_units_;
  UnitVerbs& verbs_;

  std::vector<bool> is_trained_;
  std::vector<bool> is_complete_;               // in this backward
  std::size_t next_turn_ = 0, num_waited_ = 0;  // turns begun, and turns waited for
  bool last_micro_step_ = true;
};

}  // namespace tessera
