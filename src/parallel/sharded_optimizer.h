// The fourth verb: updates the master values of every unit from their reduced gradients.
//
// Called after the engine's last backward of a step. Every rank passes the same arguments. See 'The update' in
// docs/design/parallel.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/optimizers/optimizer.h"
#include "parallel/engine.h"
#include "parallel/offload.h"
#include "parallel/unit_error.h"

namespace tessera {

at::ScalarType scalar_type_of(NumberType type);

// The learning rate comes with each update; the weight decay applies to the decaying parameters.
struct OptimizerChoice {
  const OptimizerKind* optimizer = nullptr;
  OptimizerNumbers numbers{};
};
// What the optimizer keeps for each parameter, in float32 numbers' worth of memory.
int num_moments_of(const OptimizerChoice& choice);
// By any word that optimizers() lists.
inline OptimizerChoice choose_optimizer(const std::string& word, const OptimizerNumbers& numbers = {}) {
  return {&optimizer_of(word), numbers};
}

struct UpdateArguments {
  double learning_rate = 0;
  double divisor = 1;   // of the summed gradient: counted tokens, or ranks; includes a loss scale
  double max_norm = 0;  // clips the divided gradient's global norm; 0: no clipping
};

struct UpdateResult {
  double gradient_norm = 0;             // of the divided gradient, before clipping
  bool skipped = false;                 // not finite: nothing was changed
  std::vector<GradientFault> faults{};  // of a skipped step: whose gradients were not finite, equal on all ranks
};

// Who runs an offloaded optimizer's updates. In the background: a separate thread, while the caller continues with the
// next step, in which each unit waits for its own update. At once: the caller. Auto: the caller on a CPU, which has no
// time to spare, else in the background.
enum class HostUpdates { kAuto, kAtOnce, kInBackground };

class ShardedOptimizer {
 public:
  // The engine must outlive it.
  ShardedOptimizer(Engine& engine, const OptimizerChoice& choice, HostUpdates host_updates = HostUpdates::kAuto);
  ~ShardedOptimizer();

  // Call it before the last micro-step's backward: each unit is then updated within backward, as soon as its gradient
  // is complete, and update() with the same arguments only finishes. Not with clipping or a loss scale, which need the
  // norm of all units before the first update. A gradient that is not finite is then an Error, as it has been used.
  void update_during_backward(const UpdateArguments& arguments);
  UpdateResult update(const UpdateArguments& arguments);
  // The next update changes nothing of a unit on the device before that unit's read is done: forward, backward and the
  // norm overlap with the reads, and each unit's update with those of later units.
  void update_after(std::vector<Transfer> reads) { reads_ = std::move(reads); }

  std::int64_t num_updates() const { return num_updates_; }
  void set_num_updates(std::int64_t number) { num_updates_ = number; }
  // What the optimizer keeps, under torch's names.
  const std::vector<OptimizerState>& states() const { return states_; }
  // State `index` of a unit's updated() part, on the master's device. Call it after FlatUnit::finish_update.
  const at::Tensor& state(std::size_t unit, std::size_t index) const { return states_of_unit_[unit][index]; }

 private:
  double gradient_norm() const;
  double norm_on_device(const at::Tensor& sums) const;
  void check_order(const at::Tensor& order_of_rank) const;
  std::vector<GradientFault> find_faults() const;
  void update_all(double learning_rate, double gradient_scale);
  void begin_update(std::size_t index, double learning_rate, double gradient_scale);
  void update_unit(std::size_t index, const UpdateNumbers& update) const;

  Engine& engine_;
  OptimizerChoice choice_;
  std::vector<OptimizerState> states_;
  std::vector<std::vector<at::Tensor>> states_of_unit_;
  std::vector<at::Tensor> square_sums_;  // by unit, of this step
  mutable at::Tensor unit_begins_;       // of each unit's sums; made when it is first needed
  std::int64_t num_updates_ = 0;
  bool is_updating_ = false;              // during backward
  std::vector<Transfer> reads_;           // by unit: what its next update waits for; empty: nothing
  std::unique_ptr<UpdateWorker> worker_;  // null if the caller updates; the last member, as it uses the others
};

}  // namespace tessera
