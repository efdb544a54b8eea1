// The state of one unit: its parameters and its gradient, each with its verbs. docs/design/parallel.md, 'Words'.
//
// Order within a step: begin_gather, wait_gather, [release], ...; then, per backward, accept_gradient per parameter,
// begin_reduce once, wait_reduce before gradient() is read; adopt_update after the optimizer has written the master.
// All ranks of the groups call begin_gather and begin_reduce of all units in the same order. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "parallel/unit_gradient.h"
#include "parallel/unit_layout.h"
#include "parallel/unit_values.h"

namespace tessera {

// A parameter of the module, under its full name.
struct UnitParameter {
  std::string name;
  at::Tensor parameter;
  ParameterGroup group = ParameterGroup::kDecaying;
};

class FlatUnit {
 public:
  // Moves the parameters' values into the unit: they become views of its whole buffer, in the compute type, on the
  // device. `first_values`: empty: the parameters' own. `sync_from_first`: collective: everyone takes the values of the
  // groups' first rank.
  FlatUnit(std::string name, const std::vector<UnitParameter>& parameters, const UnitCommon& common,
           const ParameterSource& first_values, bool sync_from_first);

  const std::string& name() const { return context_->name; }
  const FlatLayout& layout() const { return context_->layout; }
  std::size_t num_parameters() const { return layout().slots().size(); }

  void begin_gather() { values_->begin_gather(); }  // does nothing if the unit is whole or on its way
  void wait_gather() { values_->wait_gather(); }    // starts the gather if necessary
  void release() { values_->release(); }            // does nothing unless the row splits parameters
  // The same after a forward pass with a backward to come: keeps what backward gathers from.
  void release_until_backward() { values_->release_until_backward(); }
  bool is_whole() const { return values_->is_whole(); }
  bool is_on_its_way() const { return values_->is_on_its_way(); }

  void accept_gradient(std::size_t slot) { gradient_->accept(slot); }
  void accept_gradients(const std::vector<kernels::GivenGradient>& gradients) { gradient_->accept(gradients); }
  at::Tensor gradient_room(std::size_t slot) { return gradient_->room(slot); }
  void begin_reduce(bool last_micro_step);
  void continue_reduce() { gradient_->continue_reduce(); }
  void wait_reduce() { gradient_->wait_reduce(); }

  // The updated() part of the float32 values that the optimizer updates, and of their gradient (float32 or the reduce
  // type). On the host if the row offloads the optimizer; wait_gradient_on_host waits until the gradient is there, and
  // gradient_is_on_host asks; both from any thread.
  const kernels::SplitFloats& split_master() const { return values_->master(); }
  at::Tensor master() const { return values_->master().joined(); }  // a copy if it is kept in halves: for tests
  const at::Tensor& gradient() const { return gradient_->value(); }
  bool has_gradient() const { return gradient_->is_reduced(); }
  void wait_gradient_on_host() const { gradient_->wait_on_host(); }
  bool gradient_is_on_host() const { return gradient_->is_on_host(); }
  at::Tensor square_sums() const { return gradient_->square_sums(); }
  bool own_gradient_is_finite() const { return gradient_->own_is_finite(); }
  // Where the optimizer writes the compute type; undefined if the master serves.
  const at::Tensor& compute_copy() const { return values_->compute_copy(); }
  FlatRange updated() const { return context_->updated(); }
  bool is_updated_on_host() const { return context_->placement.optimizer.is_on_host(); }
  bool is_part() const { return context_->placement.optimizer.is_split(); }  // updated() is this rank's shard only
  // The master has new values, or will have them when `pending` is ready. Forgets the gradient; if parameters are kept
  // whole, sends them to the other ranks. The next gather waits for `pending`; with delayed updates the next backward
  // does.
  void adopt_update(std::shared_future<void> pending = {});
  // With delayed updates, before the next one: from now on gathers send the last update. Collective if parameters are
  // kept whole and updated in parts. The next update may write when the transfer is done.
  Transfer publish_update() { return values_->publish_update(); }
  // Publishes and waits: afterwards nothing reads or writes master and compute copy. Collective like publish_update.
  void finish_update();
  // Replaces the values: float32 [layout().padded_numel()] on the device, the same on every rank. Not collective.
  // Forgets a gradient.
  void replace_values(const at::Tensor& values);
  // Replaces this rank's updated() part: float32, on any device. Collective like publish_update. Forgets a gradient.
  void replace_part(const at::Tensor& values);
  void forget_gradient() { gradient_->forget(); }

 private:
  std::shared_ptr<const UnitContext> context_;
  std::unique_ptr<UnitValues> values_;
  std::unique_ptr<UnitGradient> gradient_;
};

// For saving and loading unit by unit, between steps, when no gradient is pending. All ranks make the calls for the
// same units in the same order.

// `part` is this rank's updated() part of a flat float32 state of the unit (the master, a moment), after finish_update.
// Returns the whole state, [padded_numel]: on `device`, where collectives work; or `part` itself if every rank has it
// whole. Collective over the shard group if the unit is split.
at::Tensor gather_whole(const FlatUnit& unit, const UnitGroups& groups, const at::Tensor& part, at::Device device);

// The reverse: copies this rank's part of `whole`, which is the same on every rank, into `part`.
void take_part(const FlatUnit& unit, const at::Tensor& part, const at::Tensor& whole);

}  // namespace tessera
