#include "parallel/unit_schedule.h"

namespace tessera {

UnitSchedule::UnitSchedule(const SpreadOptions& options, const Placement& placement, bool across_nodes,
                           std::size_t num_units, UnitVerbs& verbs)
    : prefetches_forward_(options.forward_prefetch),
      releases_after_forward_(placement.released_after_forward),
      across_nodes_(across_nodes),
      delays_updates_(placement.delayed_update),
      backward_prefetch_(options.backward_prefetch),
      num_units_(num_units),
      verbs_(verbs),
      is_trained_(num_units, true),
      is_complete_(num_units, false) {}

void UnitSchedule::gather(std::size_t unit) {
  verbs_.begin_gather(unit);
  verbs_.wait_gather(unit);
}

void UnitSchedule::begin_forward(std::size_t unit) {
  gather(unit);
  if (prefetches_forward_ && unit + 1 < root()) verbs_.begin_gather(unit + 1);
}

// The last unit stays: backward starts with it.
void UnitSchedule::end_forward(std::size_t unit, bool has_backward) {
  if (!releases_after_forward_ || unit + 1 == root()) return;
  has_backward ? verbs_.release_until_backward(unit) : verbs_.release(unit);
}

void UnitSchedule::begin_backward(bool last_micro_step) {
  gather(root());  // an evaluation since forward has released it
  last_micro_step_ = last_micro_step;
  next_turn_ = num_waited_ = 0;
  for (std::size_t i = 0; i < num_units_; ++i) is_complete_[i] = !is_trained_[i];
}

void UnitSchedule::begin_unit_backward(std::size_t unit) {
  gather(unit);
  if (backward_prefetch_ == BackwardPrefetch::kPre && unit > 0) verbs_.begin_gather(unit - 1);
}

void UnitSchedule::gradient_is_complete(std::size_t unit) {
  is_complete_[unit] = true;
  while (next_turn_ < root() && is_complete_[unit_of_turn(next_turn_)]) begin_reduce();
}

void UnitSchedule::end_unit_backward(std::size_t unit) {
  verbs_.release(unit);
  if (backward_prefetch_ == BackwardPrefetch::kPost && unit > 0) verbs_.begin_gather(unit - 1);
}

void UnitSchedule::end_backward() {
  // Units that were not used, or used twice; then the root, whose gradients come from everywhere.
  while (next_turn_ <= root()) begin_reduce();
  for (std::size_t i = 0; i < root(); ++i) verbs_.release(i);
  // The next micro-step starts with the root, whose values do not change before the update.
  if (last_micro_step_) verbs_.release(root());
}

// One reduction is in flight while the next gradient is computed; with more, a rank that runs ahead would hold every
// unit's gradient. So a reduction has one unit's backward to complete, or two if it continues across nodes.
void UnitSchedule::begin_reduce() {
  const std::size_t turn = next_turn_++;
  if (turn > 0) wait_for_reductions_until(across_nodes_ ? turn - 1 : turn);
  verbs_.begin_reduce(unit_of_turn(turn), last_micro_step_);
  if (turn > 0 && across_nodes_) verbs_.continue_reduce(unit_of_turn(turn - 1));
}

// In the order in which the reductions began, so that all ranks continue across nodes in the same order.
void UnitSchedule::wait_for_reductions_until(std::size_t turn) {
  for (; num_waited_ < turn; ++num_waited_) verbs_.wait_reduce(unit_of_turn(num_waited_));
}

// The root comes first, as in the next forward; it is also the largest, so that a GPU has work while the host queues
// the others. In the background its gradient arrives last, and until it is there the worker begins at the other end.
// Delayed updates are needed by the next backward instead: the last unit's first, the root's at the end.
std::size_t UnitSchedule::unit_of_update(std::size_t place) const {
  return delays_updates_ ? unit_of_turn(place) : (place + root()) % num_units_;
}

}  // namespace tessera
