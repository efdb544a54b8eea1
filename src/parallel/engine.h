// Spreads a model's units over ranks while it computes: the runner that gathers, releases and reduces.
//
//   Engine engine(world, *model, model->units(), options);
//   {
//     auto pass = engine.forward();                   // gathers the root; run() works while the pass lives
//     loss = model->loss(batch, engine).sum;
//   }
//   engine.backward(loss, /*last_micro_step=*/true);  // overlaps with the reductions
//   ... ShardedOptimizer::update reads engine.units() ...
//
// The model must outlive the engine, and every graph made under it must be destroyed before it. All ranks make the same
// calls in the same order. One thread at a time: hooks run inside backward(). After an exception the engine cannot be
// used again. docs/design/parallel.md says what happens when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parallel/flat_unit.h"
#include "parallel/model_parts.h"
#include "parallel/step_clock.h"
#include "parallel/unit_error.h"
#include "parallel/unit_schedule.h"
#include "tessera/unit.h"
#include "tessera/world.h"

namespace tessera {

struct EngineOptions {
  SpreadOptions spread;
  UnitTypes types;
  // Parameters without weight decay; empty: none.
  std::function<bool(const std::string& name)> is_exempt_from_decay;
  // Where to compute; none: where the parameters are.
  std::optional<at::Device> device;
  // The parameters' first values, asked for unit by unit: they may then be on the meta device, and no rank ever holds
  // more of the model than the row says plus one unit. Empty: the parameters' own values.
  ParameterSource first_values;
  // A CPU's memory is the host's, so there offloading changes nothing. Tests pretend that it is separate.
  bool host_memory_is_separate = false;
};

class Engine : public UnitRunner, private UnitVerbs {
 public:
  // Collective. Throws Error naming the first difference if the ranks' models or options differ.
  Engine(World& world, torch::nn::Module& model, const std::vector<Unit>& units, const EngineOptions& options);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // While it lives, the root is whole and units may run. The end of a pass without gradients releases everything.
  class Pass {
   public:
    explicit Pass(Engine& engine);
    ~Pass() noexcept(false);
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    Engine& engine_;
    StepClock::Scope timed_;
    int num_exceptions_;  // in flight when the pass began
  };
  [[nodiscard]] Pass forward() { return Pass(*this); }
  // A unit of the model that the engine was not given runs as part of the root.
  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override;

  void backward(const at::Tensor& loss, bool last_micro_step = true);

  // When it returns, every unit's gradient() is complete. Call it after the last micro-step, before an update.
  void wait_for_gradients();
  // `listener` is called for each unit (by its index in units()) as soon as its gradient of the last micro-step is
  // complete: within backward, in the same order on all ranks, or at the latest in wait_for_gradients. Empty: none.
  void listen_to_gradients(std::function<void(std::size_t)> listener) { listener_ = std::move(listener); }
  // Waits for background updates, publishes delayed ones, and rethrows their errors. Call it at the end of a run, and
  // before masters and moments are read. Collective. Not between a forward and its backward.
  void finish_updates();
  // Collective: every rank takes rank 0's batch-norm statistics. The first pass of a step does this by itself; before
  // evaluation and saving the caller must.
  void sync_buffers();

  // The units in the order of the model's list, the root last.
  std::vector<FlatUnit>& units() { return units_; }
  const UnitGroups& groups() const { return groups_; }
  const EngineOptions& options() const { return options_; }
  // The row in force, adapted to the size of the nodes; without offload if the device's memory is the host's.
  const Placement& placement() const { return placement_; }
  int rank() const { return rank_; }
  Group* all() const { return all_; }  // every rank; null if there is only one
  at::Device device() const { return device_; }
  StepClock& clock() { return clock_; }
  const UnitSchedule& schedule() const { return schedule_; }

  // A hash of the gathers begun so far: equal on all ranks that ran the same units in the same order.
  std::uint64_t gather_order() const { return gather_order_; }
  // Runs `work` for a unit. Its exceptions name rank, phase and unit; after one the engine refuses every call.
  template <typename Work>
  decltype(auto) guarded(const char* phase, std::size_t index, Work&& work);

 private:
  struct Progress;  // of a unit within one forward and backward
  class Collector;  // of the gradients that nodes of a unit give

  std::size_t root() const { return schedule_.root(); }
  void watch(std::size_t index, const std::vector<UnitParameter>& parameters);
  at::Tensor run_unit(std::size_t index, const at::Tensor& input, const Body& body);
  void release_all();

  // What the schedule asks for.
  void begin_gather(std::size_t index) override;
  void wait_gather(std::size_t index) override;
  void release(std::size_t index) override;
  void release_until_backward(std::size_t index) override;
  void begin_reduce(std::size_t index, bool last_micro_step) override;
  void continue_reduce(std::size_t index) override;
  void wait_reduce(std::size_t index) override;

  // Called by hooks in backward.
  void on_output_gradient(std::size_t index);
  void on_input_gradient(std::size_t index);
  void on_parameter_gradient(std::size_t index, std::size_t slot);  // autograd has put it into .grad
  void on_given_gradients(std::size_t index, const std::vector<kernels::GivenGradient>& gradients);
  void refuse_late_gradient(std::size_t index, std::size_t slot) const;
  bool note_arrival(std::size_t index, std::size_t slot);
  void on_last_gradient(std::size_t index);

  EngineOptions options_;
  at::Device device_;
  StepClock clock_;
  Placement placement_;
  UnitGroups groups_;
  Group* all_;
  int rank_;
  std::unique_ptr<HostLink> link_;  // null if nothing is offloaded
  ModuleBuffers buffers_;
  UnitSchedule schedule_;
  std::vector<FlatUnit> units_;
  std::vector<Progress> progress_;
  std::unordered_map<const torch::nn::Module*, std::size_t> index_of_;
  std::unordered_set<const torch::nn::Module*> of_model_;  // every module of the model
  std::vector<at::Tensor> watched_;                        // parameters that carry our hook
  std::vector<std::unique_ptr<Collector>> collectors_;     // by unit
  std::function<void(std::size_t)> listener_;

  bool in_backward_ = false;
  bool buffers_are_due_ = true;  // no pass with gradients since the last update
  int num_passes_ = 0;           // alive now
  bool has_forward_ = false;     // with gradients, whose backward has not run
  std::size_t backward_at_ = 0;  // the unit whose gradients are being computed
  std::uint64_t gather_order_ = 0;
  std::string first_error_;  // every later call repeats it
};

template <typename Work>
decltype(auto) Engine::guarded(const char* phase, std::size_t index, Work&& work) {
  if (!first_error_.empty()) throw Error("the engine cannot be used after an error: " + first_error_);
  try {
    return in_unit(rank_, phase, units_[index].name(), std::forward<Work>(work));
  } catch (const Error& error) {
    first_error_ = error.what();
    throw;
  }
}

}  // namespace tessera
