// A unit's gradient: added up as autograd produces it, reduced over the ranks, kept until the update.
//
// Per backward: accept per parameter, begin_reduce once, wait_reduce before value() is read. All ranks of the groups
// call begin_reduce (and continue_reduce) of all units in the same order. One thread at a time; wait_on_host and
// is_on_host from any.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "kernels/gradient_room.h"
#include "parallel/unit_layout.h"

namespace tessera {

class UnitGradient {
 public:
  UnitGradient(std::shared_ptr<const UnitContext> context, std::vector<at::Tensor> parameters);
  UnitGradient(const UnitGradient&) = delete;
  UnitGradient& operator=(const UnitGradient&) = delete;

  // Moves the parameter's .grad into the flat gradient: now, or in begin_reduce at the latest.
  void accept(std::size_t slot);
  // Moves what a node gives, all at once.
  void accept(const std::vector<kernels::GivenGradient>& gradients);
  // A place in the flat gradient where that of a parameter may be computed; undefined: none.
  at::Tensor room(std::size_t slot);
  // `last_micro_step`: rows with whole gradients reduce only then. Parameters without a gradient count as zero.
  void begin_reduce(bool last_micro_step);
  void continue_reduce();  // the second part, across nodes; waits for the first
  // Waits for the reduction; after the last micro-step, starts the download of an offloaded gradient.
  void wait_reduce();
  bool is_reduced() const { return is_reduced_; }

  // [updated], float32 or the reduce type; after wait_reduce. On the host if the optimizer is offloaded.
  const at::Tensor& value() const { return context_->placement.optimizer.is_on_host() ? on_host_ : reduced_; }
  void wait_on_host() const { download_.wait(); }
  bool is_on_host() const { return download_.is_done(); }
  // The sum of squares of each block of value(), on the device; after wait_reduce.
  at::Tensor square_sums() const;
  // Whether this rank's own gradient was finite before the reduction: asked if the sum is not finite, valid until the
  // next step's first reduction. Not recorded with one rank.
  bool own_is_finite() const;
  void forget();

 private:
  bool arrives_in_place(std::size_t slot, const at::Tensor& gradient);
  void make_flat();
  void move_into_flat(std::size_t slot);
  void move_waiting();
  void zero_gaps(const at::Tensor& flat) const;
  void note_own();
  void store();
  void send_to_host();

  std::shared_ptr<const UnitContext> context_;
  std::vector<at::Tensor> parameters_;  // by slot

  at::Tensor flat_;                   // [padded], from the first gradient until it is reduced
  std::vector<at::Tensor> targets_;   // by slot: views of flat_, made when needed; they live as long as it
  std::vector<std::size_t> waiting_;  // slots whose gradients are still in .grad: small ones
  std::vector<bool> is_waiting_;      // by slot
  std::int64_t waiting_numel_ = 0;    // of all of them together
  std::vector<bool> has_gradient_;    // by slot, in this backward or an earlier micro-step
  std::vector<const void*> lent_;     // by slot: where its part of flat_ is, if someone computes the gradient there
  at::Tensor incoming_;               // what a reduction writes
  at::Tensor reduced_;                // [updated] on the device
  at::Tensor on_host_;                // [updated]; allocated once, as page-locking is slow
  at::Tensor square_sums_;            // of an offloaded gradient
  at::Tensor own_sum_;                // on a GPU: sum of squares of this rank's own gradients so far
  bool own_sum_is_finite_ = true;     // on a CPU: whether that sum is finite
  WorkHandle reduce_;
  Transfer download_;
  bool across_nodes_is_due_ = false, is_first_ = true, is_last_ = true, is_reduced_ = false;
};

}  // namespace tessera
