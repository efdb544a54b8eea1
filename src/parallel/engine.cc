#include "parallel/engine.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <exception>
#include <utility>

#include "core/error.h"
#include "kernels/device_fill.h"
#include "kernels/gradient_room.h"
#include "parallel/engine_hooks.h"
#include "parallel/model_parts.h"
#include "parallel/rank_checks.h"

namespace tessera {
namespace {

constexpr const char* kRootName = "root";

UnitGroups groups_of(World& world, const Placement& placement) {
  UnitGroups groups;
  const auto useful = [](Group& group) { return group.size() > 1 ? &group : nullptr; };
  if (placement.reduced_over() == Over::kWorld) groups.shard = useful(world.all());
  if (placement.reduced_over() == Over::kNode) {
    groups.shard = useful(world.node());
    groups.replicas = useful(world.across());
  }
  if (placement.keeps_second_copy()) groups.second_copy = useful(world.node());
  return groups;
}

at::Device device_of(const torch::nn::Module& model, const EngineOptions& options) {
  const auto parameters = model.parameters();
  if (options.device) return *options.device;
  return parameters.empty() || parameters.front().is_meta() ? at::Device(at::kCPU) : parameters.front().device();
}

Placement placement_in_force(World& world, const EngineOptions& options, at::Device device) {
  check_world(world, options.spread);
  const Placement placement = placement_of(options.spread).on_nodes_of(world.node().size(), world.size());
  return device.is_cpu() && !options.host_memory_is_separate ? placement.on_device_alone() : placement;
}

}  // namespace

struct Engine::Progress {
  std::size_t num_trained = 0;  // parameters that need a gradient
  std::size_t num_missing = 0;  // parameters whose gradient has not arrived in this backward
  int num_runs = 0;             // since the last backward; recomputations within it are not counted
  int num_uses = 0;             // runs that backward has not passed yet; runs without gradients are not counted
  std::vector<bool> has_come;   // by slot, in this backward
  bool has_given = false;       // some by nodes: more may come until backward has passed the unit
};

class Engine::Collector : public kernels::GradientCollector {
 public:
  Collector(Engine& engine, std::size_t index) : engine_(engine), index_(index) {}
  // On a CPU, gradients are moved while they are in the cache, and no buffer lies idle until they come.
  at::Tensor room(std::size_t slot) override {
    return engine_.device_.is_cuda() ? engine_.units_[index_].gradient_room(slot) : at::Tensor();
  }
  void take(const std::vector<kernels::GivenGradient>& gradients) override {
    engine_.on_given_gradients(index_, gradients);
  }

 private:
  Engine& engine_;
  std::size_t index_;
};

Engine::Engine(World& world, torch::nn::Module& model, const std::vector<Unit>& units, const EngineOptions& options)
    : options_(options),
      device_(device_of(model, options)),
      clock_(device_),
      placement_(placement_in_force(world, options, device_)),
      groups_(groups_of(world, placement_)),
      all_(world.size() > 1 ? &world.all() : nullptr),
      rank_(world.rank()),
      buffers_(world, model, device_),
      schedule_(options.spread, placement_, groups_.replicas != nullptr, units.size() + 1, *this) {
  of_model_.insert(&model);
  for (const auto& module : model.modules(/*include_self=*/false)) of_model_.insert(module.get());
  std::unordered_set<const torch::nn::Module*> listed;
  for (const Unit& unit : units) {
    if (!of_model_.contains(unit.module)) throw Error(fmt::format("unit {} is not a module of the model", unit.name));
    if (!listed.insert(unit.module).second) throw Error(fmt::format("unit {}: its module is listed twice", unit.name));
  }
  const auto division = divide(model, units, options.is_exempt_from_decay);
  check_ranks_match(world, model, units, options, division);
  if (placement().optimizer.is_on_host() || placement().parameters.is_on_host()) {
    link_ = std::make_unique<HostLink>(device_, options.spread.pin_memory);
  }
  for (std::size_t index = 0; index < division.size(); ++index) {
    const bool is_root = index == units.size();
    const Placement row = placement_of_unit(placement(), options.spread, index, division.size());
    units_.emplace_back(
        is_root ? kRootName : units[index].name, division[index],
        UnitCommon{row.in_shards(groups_.num_shards()), groups_, options_.types, device_, link_.get(), &clock_},
        options_.first_values, options_.spread.sync_module_states);
    if (!is_root) index_of_[units[index].module] = index;
  }
  if (options.spread.sync_module_states) buffers_.take_from_first();
  if (std::exchange(options_.first_values, {})) {  // it may hold a file
    Transfer::of_current_stream(device_).wait();
    kernels::free_fill_buffers(device_);
  }
  // Nothing below can fail: a constructor that throws must leave no hooks.
  for (std::size_t index = 0; index < units_.size(); ++index) watch(index, division[index]);
}

Engine::~Engine() {
  for (const at::Tensor& parameter : watched_) {
    on_accumulated_gradient(parameter, nullptr);
    kernels::stop_collecting(parameter);
  }
}

void Engine::watch(std::size_t index, const std::vector<UnitParameter>& parameters) {
  const FlatUnit& unit = units_[index];
  Progress& progress = progress_.emplace_back();
  progress.has_come.resize(unit.num_parameters());
  collectors_.push_back(std::make_unique<Collector>(*this, index));
  for (std::size_t slot = 0; slot < unit.num_parameters(); ++slot) {
    const at::Tensor& parameter = parameters[unit.layout().entry_of_slot()[slot]].parameter;
    if (!parameter.requires_grad()) continue;
    on_accumulated_gradient(parameter, [this, index, slot] { on_parameter_gradient(index, slot); });
    kernels::collect_gradient(parameter, *collectors_[index], slot);
    watched_.push_back(parameter);
    ++progress.num_trained;
  }
  if (progress.num_trained == 0) schedule_.set_untrained(index);
}

Engine::Pass::Pass(Engine& engine)
    : engine_(engine), timed_(engine.clock_.enter(StepPart::kForward)), num_exceptions_(std::uncaught_exceptions()) {
  // Evaluations see the newest values, except while a graph waits for its backward (which needs the values of its
  // forward) and between micro-steps (which all use one set of values).
  const bool evaluates = !c10::GradMode::is_enabled() && engine_.num_passes_ == 0 && !engine_.has_forward_ &&
                         engine_.schedule_.is_last_micro_step();
  if (evaluates && engine_.placement().delayed_update) engine_.finish_updates();
  engine_.schedule_.begin_pass();
  if (c10::GradMode::is_enabled()) {
    engine_.has_forward_ = true;
    if (std::exchange(engine_.buffers_are_due_, false)) engine_.sync_buffers();
  }
  ++engine_.num_passes_;
}

Engine::Pass::~Pass() noexcept(false) {
  --engine_.num_passes_;
  // While an exception is being thrown, wait for nothing: the other ranks may never arrive.
  if (std::uncaught_exceptions() > num_exceptions_) return;
  if (!c10::GradMode::is_enabled() && engine_.num_passes_ == 0) engine_.release_all();
}

at::Tensor Engine::run(const Unit& unit, const at::Tensor& input, const Body& body) {
  if (num_passes_ == 0 && !in_backward_) {
    throw Error(
        fmt::format("unit {} was run outside a forward pass: keep `auto pass = engine.forward()` while the model "
                    "computes its loss",
                    unit.name));
  }
  const auto found = index_of_.find(unit.module);
  const std::size_t index = found == index_of_.end() ? root() : found->second;
  if (index == root() && !of_model_.contains(unit.module)) {
    throw Error(fmt::format("unit {} is not part of this engine's model", unit.name));
  }
  return guarded(in_backward_ ? "backward" : "forward", index,
                 [&] { return index == root() ? body(input) : run_unit(index, input, body); });
}

at::Tensor Engine::run_unit(std::size_t index, const at::Tensor& input, const Body& body) {
  at::RecordFunction traced(at::RecordScope::USER_SCOPE);
  if (traced.isActive()) traced.before(units_[index].name());
  in_backward_ ? schedule_.recompute(index) : schedule_.begin_forward(index);
  Progress& progress = progress_[index];
  if (has_forward_) ++progress.num_runs;  // also without gradients: backward may recompute it
  at::Tensor output;
  if (c10::GradMode::is_enabled()) {
    ++progress.num_uses;
    const at::Tensor entered = on_gradient_of(input, [this, index] { on_input_gradient(index); });
    output = on_gradient_of(body(entered), [this, index] { on_output_gradient(index); });
  } else {
    output = body(input);
  }
  if (!in_backward_) schedule_.end_forward(index, has_forward_);
  return output;
}

void Engine::begin_gather(std::size_t index) {
  FlatUnit& unit = units_[index];
  if (unit.is_whole() || unit.is_on_its_way()) return;
  gather_order_ = (gather_order_ ^ (index + 1)) * 0x100000001b3;  // FNV-1a
  guarded("gather", index, [&] { unit.begin_gather(); });
}

void Engine::wait_gather(std::size_t index) {
  guarded("gather", index, [&] { units_[index].wait_gather(); });
}

void Engine::release(std::size_t index) {
  guarded("gather", index, [&] { units_[index].release(); });
}

void Engine::release_until_backward(std::size_t index) {
  guarded("gather", index, [&] { units_[index].release_until_backward(); });
}

void Engine::begin_reduce(std::size_t index, bool last_micro_step) {
  guarded("reduction", index, [&] { units_[index].begin_reduce(last_micro_step); });
}

void Engine::continue_reduce(std::size_t index) {
  guarded("reduction", index, [&] { units_[index].continue_reduce(); });
}

void Engine::wait_reduce(std::size_t index) {
  guarded("reduction", index, [&] { units_[index].wait_reduce(); });
  if (listener_ && schedule_.is_last_micro_step()) listener_(index);
}

void Engine::backward(const at::Tensor& loss, bool last_micro_step) {
  if (!has_forward_ && first_error_.empty()) {
    throw Error("backward() needs a forward pass since the last backward(): each graph is used once");
  }
  const auto timed = clock_.enter(StepPart::kBackward);
  if (schedule_.is_last_micro_step()) schedule_.finish_reductions();  // of the previous backward
  if (schedule_.is_last_micro_step() && units_.back().has_gradient()) {
    throw Error("backward() before the previous gradient was used: call update() first, or pass last_micro_step=false");
  }
  schedule_.begin_backward(last_micro_step);
  has_forward_ = false;
  backward_at_ = root();
  for (Progress& progress : progress_) {
    progress.num_missing = progress.num_trained;
    progress.has_come.assign(progress.has_come.size(), false);
    progress.has_given = false;
  }
  in_backward_ = true;
  // Which unit backward had reached is known only when it throws.
  guarded("backward", root(), [&] {
    try {
      loss.backward();
    } catch (...) {
      in_backward_ = false;
      rethrow_in_unit(rank_, "backward", units_[backward_at_].name());
    }
  });
  in_backward_ = false;
  schedule_.end_backward();
  for (Progress& progress : progress_) progress.num_uses = progress.num_runs = 0;
  buffers_are_due_ = last_micro_step;
}

void Engine::on_output_gradient(std::size_t index) {
  backward_at_ = index;
  schedule_.begin_unit_backward(index);
}

void Engine::on_input_gradient(std::size_t index) {
  backward_at_ = root();
  Progress& progress = progress_[index];
  if (--progress.num_uses > 0) return;
  // A parameter that this rank has not used gets no gradient. Gathers and reductions alternate here, so waiting for it
  // would change the order of collectives on this rank only.
  const bool all_were_given = progress.has_given && progress.num_missing == 0;
  if (placement().parameters.is_split() || all_were_given) on_last_gradient(index);
  schedule_.end_unit_backward(index);
}

void Engine::refuse_late_gradient(std::size_t index, std::size_t slot) const {
  if (!schedule_.has_begun_reduction(index)) return;
  throw Error(
      fmt::format("a gradient of {} arrived after its unit's gradient was complete: use the parameter only inside "
                  "its unit's body, and in one backward pass",
                  units_[index].layout().slots()[slot].name));
}

void Engine::on_parameter_gradient(std::size_t index, std::size_t slot) {
  guarded("backward", index, [&] {
    refuse_late_gradient(index, slot);
    units_[index].accept_gradient(slot);
  });
  const Progress& progress = progress_[index];
  const bool is_last = note_arrival(index, slot) && progress.num_missing == 0;
  if (is_last && (!progress.has_given || progress.num_uses == 0)) on_last_gradient(index);
}

// Whether it is the parameter's first gradient in this backward.
bool Engine::note_arrival(std::size_t index, std::size_t slot) {
  Progress& progress = progress_[index];
  if (progress.has_come[slot]) return false;
  progress.has_come[slot] = true;
  --progress.num_missing;
  return true;
}

// Another node of the unit may give more: it is complete when backward has passed its input.
void Engine::on_given_gradients(std::size_t index, const std::vector<kernels::GivenGradient>& gradients) {
  guarded("backward", index, [&] {
    for (const auto& given : gradients) refuse_late_gradient(index, given.slot);
    units_[index].accept_gradients(gradients);
  });
  progress_[index].has_given = true;
  for (const auto& given : gradients) note_arrival(index, given.slot);
}

// A unit that runs more than once may get further gradients: it is reduced after backward has returned.
void Engine::on_last_gradient(std::size_t index) {
  if (index != root() && progress_[index].num_runs <= 1) schedule_.gradient_is_complete(index);
}

void Engine::sync_buffers() {
  const auto timed = clock_.enter(StepPart::kCommunication);
  buffers_.take_from_first();
}

void Engine::release_all() {
  for (FlatUnit& unit : units_) in_unit(rank_, "gather", unit.name(), [&] { unit.release(); });
}

void Engine::finish_updates() {
  if (placement().delayed_update && has_forward_) {
    throw Error(
        "a delayed update cannot be published between a forward and its backward, which needs the old values: "
        "call backward first, or evaluate under NoGradGuard");
  }
  for (std::size_t index = 0; index < units_.size(); ++index) {
    guarded("update", index, [&] { units_[index].finish_update(); });
  }
}

void Engine::wait_for_gradients() {
  guarded("update", root(), [] {});  // repeats an earlier error, if any
  if (!schedule_.is_last_micro_step()) {
    throw Error("no gradient is complete: the last backward() announced another micro-step");
  }
  release_all();  // a pass since backward may have gathered values that the update replaces
  schedule_.finish_reductions();
  if (listener_) return;  // it has received them
  for (const FlatUnit& unit : units_) {
    if (!unit.has_gradient()) {
      throw Error(fmt::format("unit {} has no gradient: call backward() before each update()", unit.name()));
    }
  }
}

}  // namespace tessera
