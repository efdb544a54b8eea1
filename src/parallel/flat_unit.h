// The state of one unit: its parameters, gradients and master values, and the verbs gather, release and reduce.
//
// Order, within a step: begin_gather, wait_gather, [release], ...; then, per backward, accept_gradient for parameters,
// begin_reduce once, wait_reduce before gradient() is read; take_update after the optimizer has written the master.
// All ranks of the groups call begin_gather and begin_reduce of all units in the same order. One thread at a time.
// docs/design/parallel.md draws the states.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "parallel/flat_layout.h"
#include "parallel/placement.h"
#include "tessera/world.h"

namespace tessera {

// The ranks that a unit is spread over. Null: nobody but this rank.
struct UnitGroups {
  Group* shard = nullptr;
  Group* replicas = nullptr;  // those that hold the same shard on other nodes
  int num_shards() const { return shard == nullptr ? 1 : shard->size(); }
  int shard_rank() const { return shard == nullptr ? 0 : shard->rank(); }
};

struct UnitTypes {
  at::ScalarType compute = at::kFloat;  // what the module computes in and gathers carry
  at::ScalarType reduce = at::kFloat;   // what reductions carry
  bool accumulates = false;             // several micro-steps an update: gradients are added in float32
};

// A parameter of the module, under its full name.
struct UnitParameter {
  std::string name;
  at::Tensor parameter;
  ParameterGroup group = ParameterGroup::kDecaying;
};

class FlatUnit {
 public:
  // Moves the parameters' values into the unit: they become views of its whole buffer, in the compute type, on their
  // own device. Collective where `sync_from_first` asks for the values of the shard and replica groups' first rank.
  FlatUnit(std::string name, const std::vector<UnitParameter>& parameters, const Placement& placement,
           const UnitGroups& groups, const UnitTypes& types, bool sync_from_first);
  FlatUnit(FlatUnit&&) = default;

  const std::string& name() const { return name_; }
  const FlatLayout& layout() const { return layout_; }
  std::size_t num_parameters() const { return parameters_.size(); }

  void begin_gather();  // nothing to do where it is whole or on its way
  void wait_gather();   // begins it, too, if nobody has
  void release();       // only where the row splits parameters
  bool is_whole() const { return state_ == State::kWhole; }
  bool is_on_its_way() const { return state_ == State::kGathering; }

  // Takes over what autograd has put into the parameter's .grad, and clears that.
  void accept_gradient(std::size_t slot);
  // `last_micro_step`: rows with whole gradients reduce only then. Parameters without a gradient count as zero.
  void begin_reduce(bool last_micro_step);
  void continue_reduce();  // what follows in another group; waits for the first step
  void wait_reduce();

  // The float32 values that the optimizer updates, and their gradient (float32 or the reduce type): of range().
  const at::Tensor& master() const { return master_; }
  const at::Tensor& gradient() const { return gradient_; }
  // Where the optimizer writes the compute type; undefined where the master is it.
  const at::Tensor& compute_copy() const { return compute_copy_; }
  FlatRange range() const { return is_part() ? own_ : layout_.whole(); }
  bool is_part() const { return placement_.optimizer_split; }  // range() is this rank's shard only
  // The master has new values: forget the gradient, let the others have the parameters where they are kept whole.
  void take_update();
  void forget_gradient();

 private:
  enum class State { kSplit, kGathering, kWhole };

  void fill(bool sync_from_first);
  void place_master();
  void bind_parameters();
  at::Tensor own_part(const at::Tensor& whole) const { return whole.narrow(0, own_.begin, own_.numel()); }
  void make_flat_gradient();
  void zero_gaps(const at::Tensor& flat) const;
  void store_shard_gradient();

  std::string name_;
  std::vector<at::Tensor> parameters_;  // by slot
  FlatLayout layout_;
  Placement placement_;
  UnitGroups groups_;
  UnitTypes types_;
  FlatRange own_;

  at::Tensor whole_;         // [padded] compute type; its storage is empty while split
  at::Tensor shard_;         // [shard] compute type: what a gather sends; defined where parameters are split
  at::Tensor master_;        // [range] float32; may be whole_, a part of it, or shard_
  at::Tensor compute_copy_;  // [range] compute type, a part of whole_ or shard_; undefined where that is master_
  State state_ = State::kWhole;
  WorkHandle gather_;

  at::Tensor flat_gradient_;        // [padded], from the first gradient until it is reduced
  std::vector<bool> has_gradient_;  // by slot, in this backward or an earlier micro-step
  at::Tensor incoming_;             // what a reduction writes
  at::Tensor gradient_;             // [range]
  WorkHandle reduce_;
  bool across_nodes_is_due_ = false;
};

}  // namespace tessera
