#include "parallel/engine.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "parallel/engine_hooks.h"
#include "parallel/model_likeness.h"

namespace tessera {
namespace {

constexpr const char* kRootName = "root";

// Each parameter once: the unit that holds it, or the root where none or several do.
struct Division {
  std::vector<std::vector<UnitParameter>> of_unit;  // the root's last
};

ParameterGroup group_of(const std::string& name, const at::Tensor& parameter, const EngineOptions& options) {
  if (!parameter.requires_grad()) return ParameterGroup::kFrozen;
  const bool is_exempt = options.is_exempt_from_decay && options.is_exempt_from_decay(name);
  return is_exempt ? ParameterGroup::kPlain : ParameterGroup::kDecaying;
}

Division divide(torch::nn::Module& model, const std::vector<Unit>& units, const EngineOptions& options) {
  std::unordered_map<const c10::TensorImpl*, std::size_t> holder;
  const std::size_t root = units.size();
  for (std::size_t index = 0; index < units.size(); ++index) {
    std::unordered_set<const c10::TensorImpl*> own;
    for (const at::Tensor& parameter : units[index].module->parameters()) {
      const c10::TensorImpl* impl = parameter.unsafeGetTensorImpl();
      if (!own.insert(impl).second) continue;
      const auto [place, is_new] = holder.emplace(impl, index);
      if (!is_new) place->second = root;
    }
  }
  Division division{std::vector<std::vector<UnitParameter>>(units.size() + 1)};
  std::unordered_set<const c10::TensorImpl*> taken;
  for (const auto& item : model.named_parameters()) {
    const c10::TensorImpl* impl = item.value().unsafeGetTensorImpl();
    if (!taken.insert(impl).second) continue;
    const auto found = holder.find(impl);
    division.of_unit[found == holder.end() ? root : found->second].push_back(
        {item.key(), item.value(), group_of(item.key(), item.value(), options)});
  }
  return division;
}

UnitGroups groups_of(World& world, const Placement& placement) {
  UnitGroups groups;
  const auto useful = [](Group& group) { return group.size() > 1 ? &group : nullptr; };
  if (placement.over == ShardOver::kWorld) groups.shard = useful(world.all());
  if (placement.over == ShardOver::kNode) groups.shard = useful(world.node());
  if (placement.reduced_across_nodes) groups.replicas = useful(world.across());
  return groups;
}

}  // namespace

struct Engine::Progress {
  std::size_t num_trained = 0;  // parameters that need a gradient
  std::size_t num_missing = 0;  // parameters whose gradient has not come in this backward
  int num_uses = 0;             // forward passes through it, not yet passed back
  bool used_twice = false;
  bool is_ready = false;  // every gradient is there
};

Engine::Engine(World& world, torch::nn::Module& model, const std::vector<Unit>& units, const EngineOptions& options)
    : options_(options), groups_(groups_of(world, options.placement)) {
  if (options.placement.over == ShardOver::kNobody && world.size() > 1) {
    throw UsageError(fmt::format(
        "strategy 'single' is for one rank, and there are {}: choose ddp, a zero or an FSDP one", world.size()));
  }
  const Division division = divide(model, units, options);
  check_alike(world, division.of_unit);
  for (std::size_t index = 0; index < units.size(); ++index) {
    add_unit(units[index].name, division.of_unit[index]);
    index_of_[units[index].module] = index;
  }
  add_unit(kRootName, division.of_unit.back());
}

Engine::~Engine() {
  for (const at::Tensor& parameter : watched_) on_accumulated_gradient(parameter, nullptr);
}

void Engine::add_unit(const std::string& name, const std::vector<UnitParameter>& parameters) {
  const std::size_t index = units_.size();
  FlatUnit& unit =
      units_.emplace_back(name, parameters, options_.placement, groups_, options_.types, options_.sync_module_states);
  Progress& progress = progress_.emplace_back();
  for (std::size_t slot = 0; slot < unit.num_parameters(); ++slot) {
    const at::Tensor& parameter = parameters[unit.layout().entry_of_slot()[slot]].parameter;
    if (!parameter.requires_grad()) continue;
    on_accumulated_gradient(parameter, [this, index, slot] { on_parameter_gradient(index, slot); });
    watched_.push_back(parameter);
    ++progress.num_trained;
  }
}

Engine::Pass::Pass(Engine& engine) : engine_(engine) {
  engine_.units_[engine_.root()].wait_gather();
}

Engine::Pass::~Pass() noexcept(false) {
  if (!c10::GradMode::is_enabled()) engine_.release_all();
}

at::Tensor Engine::run(const Unit& unit, const at::Tensor& input, const Body& body) {
  const auto found = index_of_.find(unit.module);
  if (found == index_of_.end()) throw Error(fmt::format("unit {} is not of this engine's model", unit.name));
  const std::size_t index = found->second;
  FlatUnit& flat = units_[index];
  flat.wait_gather();
  if (options_.forward_prefetch && !in_backward_) prefetch(static_cast<std::ptrdiff_t>(index) + 1);
  if (!c10::GradMode::is_enabled()) {
    const at::Tensor output = body(input);
    release_after_forward(index);
    return output;
  }
  Progress& progress = progress_[index];
  progress.used_twice |= progress.num_uses++ > 0;
  const at::Tensor entered = on_gradient_of(input, [this, index] { on_input_gradient(index); });
  const at::Tensor output = on_gradient_of(body(entered), [this, index] { on_output_gradient(index); });
  release_after_forward(index);
  return output;
}

// The last unit stays: backward begins with it. So does one that is recomputed within backward.
void Engine::release_after_forward(std::size_t index) {
  const bool stays = in_backward_ || index + 1 == root() || !options_.placement.released_after_forward;
  if (!stays) units_[index].release();
}

void Engine::prefetch(std::ptrdiff_t index) {
  if (index >= 0 && index < static_cast<std::ptrdiff_t>(root())) units_[static_cast<std::size_t>(index)].begin_gather();
}

void Engine::backward(const at::Tensor& loss, bool last_micro_step) {
  last_micro_step_ = last_micro_step;
  in_backward_ = true;
  next_to_reduce_ = static_cast<std::ptrdiff_t>(root()) - 1;
  for (Progress& progress : progress_) {
    progress.num_missing = progress.num_trained;
    progress.is_ready = false;
  }
  loss.backward();
  in_backward_ = false;
  // Units that were not used, or used twice; then the root, whose gradients come from everywhere.
  for (; next_to_reduce_ >= 0; --next_to_reduce_) begin_reduce(static_cast<std::size_t>(next_to_reduce_));
  begin_reduce(root());
  for (Progress& progress : progress_) progress.num_uses = 0, progress.used_twice = false;
  release_all();
}

void Engine::on_output_gradient(std::size_t index) {
  units_[index].wait_gather();
  if (options_.backward_prefetch == BackwardPrefetch::kPre) prefetch(static_cast<std::ptrdiff_t>(index) - 1);
}

void Engine::on_input_gradient(std::size_t index) {
  if (--progress_[index].num_uses > 0) return;
  units_[index].release();
  if (options_.backward_prefetch == BackwardPrefetch::kPost) prefetch(static_cast<std::ptrdiff_t>(index) - 1);
}

void Engine::on_parameter_gradient(std::size_t index, std::size_t slot) {
  units_[index].accept_gradient(slot);
  Progress& progress = progress_[index];
  if (index == root() || --progress.num_missing > 0 || progress.used_twice) return;
  progress.is_ready = true;
  while (next_to_reduce_ >= 0 && progress_[static_cast<std::size_t>(next_to_reduce_)].is_ready) {
    begin_reduce(static_cast<std::size_t>(next_to_reduce_--));
  }
}

// The one before has had this unit's backward to arrive: what follows it in another group begins now.
void Engine::begin_reduce(std::size_t index) {
  units_[index].begin_reduce(last_micro_step_);
  const std::size_t before = index == root() ? 0 : index + 1;
  if (before < root()) units_[before].continue_reduce();
}

void Engine::release_all() {
  for (FlatUnit& unit : units_) unit.release();
}

void Engine::wait_for_gradients() {
  // In the order in which the reductions began, so that all ranks go on in the other group alike.
  for (std::size_t index = root(); index-- > 0;) units_[index].wait_reduce();
  units_[root()].wait_reduce();
}

}  // namespace tessera
