#include "tessera/shard.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "comm/failure.h"
#include "core/error.h"
#include "library/shard_impl.h"

namespace tessera {
namespace {

TrainStepOptions step_options(const ShardOptions& options, const World& world) {
  TrainStepOptions step;
  step.spread = options.spread;
  step.types = {options.compute_type, options.reduce_type.value_or(options.compute_type), options.accumulates};
  if (options.compute_type == at::kHalf) step.loss_scale.emplace();
  step.recomputes = options.recomputes;
  step.device = world.device();
  step.is_exempt_from_decay = options.is_exempt_from_decay;
  step.first_values = options.first_values;
  return step;
}

torch::nn::Module& checked(const World& world, torch::nn::Module& model, const ShardOptions& options) {
  if (model.parameters().empty()) {
    throw UsageError(
        fmt::format("the model ({}) has no parameters to shard: register them with register_module() and "
                    "register_parameter()",
                    model.name()));
  }
  const bool receives_values = options.spread.sync_module_states && world.rank() != 0;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().is_meta() || options.first_values || receives_values) continue;
    throw UsageError(fmt::format(
        "'{}' is on the meta device, so it has no values: give ShardOptions::first_values, or make the model "
        "on the CPU",
        item.key()));
  }
  return model;
}

// What libtorch says about a parameter that has been released, depending on who reads it.
bool is_about_missing_data(const c10::Error& error) {
  const std::string_view what = error.what();
  return what.find("storage of size 0") != what.npos || what.find("data is not allocated") != what.npos;
}

// Sets a flag for a scope, also if an exception leaves it.
class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flag() { flag_ = false; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool& flag_;
};

// The parameters of every Sharded that lives. Ranks may be threads of one process.
std::mutex claims_mutex;
std::unordered_set<const void*> claims;

// Gives a module's buffers back the values that they have now. Their version stays, so autograd does not mind. What a
// body changes outside its module is not kept.
class KeptBuffers {
 public:
  explicit KeptBuffers(const torch::nn::Module& module) {
    for (const at::Tensor& buffer : module.buffers()) {
      if (buffer.defined()) kept_.emplace_back(buffer.variable_data(), buffer.detach().clone());
    }
  }
  void give_back() {
    const at::NoGradGuard no_gradients;
    for (auto& [buffer, values] : kept_) buffer.copy_(values);
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> kept_;
};

}  // namespace

Claim::Claim(const torch::nn::Module& model) {
  const std::lock_guard lock(claims_mutex);
  for (const auto& item : model.named_parameters()) {
    const void* parameter = item.value().unsafeGetTensorImpl();
    if (claims.contains(parameter)) {
      throw UsageError(fmt::format(
          "'{}' of the model ({}) belongs to a tessera::Sharded that still lives: destroy that one first, or "
          "make a model of its own for each",
          item.key(), model.name()));
    }
    parameters_.push_back(parameter);
  }
  claims.insert(parameters_.begin(), parameters_.end());
}

Claim::~Claim() {
  const std::lock_guard lock(claims_mutex);
  for (const void* parameter : parameters_) claims.erase(parameter);
}

Sharded::Impl::Impl(World& its_world, torch::nn::Module& its_model, const ShardOptions& its_options)
    : world(its_world),
      model(checked(its_world, its_model, its_options)),
      claim(its_model),
      options(its_options),
      units(choose_units(its_model, its_options.units)),
      map(its_model, units),
      step(its_world, its_model, units, step_options(its_options, its_world)),
      watch(its_model),
      has_run(units.size(), false) {
  options.first_values = {};  // it may hold a file
}

void Sharded::Impl::check_idle(const char* call) const {
  if (!failure.empty()) {
    throw Error(fmt::format("{}: this tessera::Sharded cannot be used any more because {}", call, failure));
  }
  if (in_forward)
    throw UsageError(fmt::format("{} was called inside forward(): call it after forward has returned", call));
  if (in_backward) throw UsageError(fmt::format("{} was called inside backward()", call));
}

void Sharded::Impl::guarded(const char* call, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    failure = fmt::format("{} failed ({})", call, message_of(error));
    throw;
  } catch (...) {
    failure = fmt::format("{} failed", call);
    throw;
  }
}

void Sharded::Impl::sync_buffers() {
  if (std::exchange(buffers_may_differ, false)) step.engine().sync_buffers();
}

std::string Sharded::Impl::advice_about_units() const {
  const auto missing = std::find(has_run.begin(), has_run.end(), false);
  if (missing == has_run.end() || !step.engine().placement().parameters.is_split()) return {};
  return fmt::format(
      "unit '{}' had not been run: if the model calls it directly, use runner.run(block, x) instead, which gathers its "
      "parameters",
      units[static_cast<std::size_t>(missing - has_run.begin())].name);
}

void Sharded::Impl::backward(const char* call, const at::Tensor& loss, bool last_micro_step) {
  check_idle(call);
  if (gradients_are_complete) {
    throw UsageError(
        fmt::format("{} was called twice without a step in between: call Optimizer::step, or, for several micro-steps "
                    "per update, accumulate() for all but the last",
                    call));
  }
  if (!loss.defined() || !loss.requires_grad()) {
    throw UsageError(
        fmt::format("{}: the loss has no gradient: it must come from forward(), outside NoGradGuard, and must not be "
                    "detached",
                    call));
  }
  if (loss.numel() != 1) {
    throw UsageError(
        fmt::format("{}: the loss must be one number, but has {}: take its mean or sum", call, loss.numel()));
  }
  if (num_passes == 0) throw UsageError(fmt::format("{} needs a forward() before it: each loss is used once", call));
  guarded(call, [&] {
    const Flag flag(in_backward);
    step.backward(loss, step.loss_factor(), last_micro_step);
  });
  num_passes = 0;
  ++num_losses;
  gradients_are_complete = last_micro_step;
}

Sharded::Sharded(World& world, torch::nn::Module& model, const ShardOptions& options)
    : impl_(std::make_unique<Impl>(world, model, options)) {}

Sharded::~Sharded() = default;

void Sharded::pass(const std::function<void()>& compute) {
  Impl& impl = *impl_;
  impl.check_idle("forward()");
  if (!at::GradMode::is_enabled() && impl.num_passes > 0) {
    throw UsageError(
        "forward() without gradients was called between a forward() and its backward(): evaluate before or after");
  }
  impl.watch.check_values();
  impl.has_run.assign(impl.has_run.size(), false);
  impl.guarded("forward()", [&] {
    const Flag flag(impl.in_forward);
    if (at::GradMode::is_enabled()) {
      impl.buffers_may_differ = true;
    } else {
      impl.sync_buffers();
    }
    try {
      const auto step_pass = impl.step.forward();
      compute();
    } catch (const c10::Error& error) {
      const std::string advice = is_about_missing_data(error) ? impl.advice_about_units() : "";
      if (advice.empty()) throw;
      throw Error(fmt::format("{}; {}", error.what_without_backtrace(), advice));
    }
  });
  if (at::GradMode::is_enabled()) ++impl.num_passes;
}

at::Tensor Sharded::forward(const at::Tensor& input) {
  auto* sequential = dynamic_cast<torch::nn::SequentialImpl*>(&impl_->model);
  if (sequential == nullptr) {
    throw UsageError(
        fmt::format("forward(tensor) is for a torch::nn::Sequential, but the model is a {}: write "
                    "forward([&] {{ return model->forward(x); }})",
                    impl_->model.name()));
  }
  at::Tensor x = input;
  pass([&] {
    for (torch::nn::AnyModule& child : *sequential) {
      x = run(Unit{{}, {}, child.ptr().get()}, x, [&child](const at::Tensor& y) { return child.forward(y); });
    }
  });
  return x;
}

void Sharded::accumulate(const at::Tensor& loss) {
  if (!impl_->options.accumulates) {
    throw UsageError("accumulate() needs ShardOptions::accumulates = true, which changes how gradients are kept");
  }
  impl_->backward("accumulate()", loss, /*last_micro_step=*/false);
}

void Sharded::backward(const at::Tensor& loss) {
  impl_->backward("backward()", loss, /*last_micro_step=*/true);
}

at::Tensor Sharded::run(const Unit& unit, const at::Tensor& input, const Body& body) {
  Impl& impl = *impl_;
  const ModelMap::Place* place = impl.map.find(unit.module);
  if (place == nullptr) {
    throw UsageError(fmt::format("run: the module {}({}) is not part of the sharded model ({})",
                                 unit.name.empty() ? "" : unit.name + " ",
                                 unit.module == nullptr ? "null" : unit.module->name(), impl.model.name()));
  }
  if (!impl.in_forward && !impl.in_backward) {
    throw UsageError(
        fmt::format("'{}' was run outside forward(), where its parameters are not gathered: write "
                    "sharded.forward([&] {{ return model->forward(x, sharded); }})",
                    place->path));
  }
  if (place->is_unit) {
    const std::size_t index = *place->unit;
    impl.has_run[index] = true;
    // Captures `body` by value: backward may call it again.
    return impl.step.runner().run(impl.units[index], input, [&impl, index, body](const at::Tensor& x) {
      // A unit that is recomputed has moved its batch-norm statistics already.
      std::optional<KeptBuffers> kept;
      if (impl.in_backward) kept.emplace(*impl.units[index].module);
      impl.running.push_back(index);
      at::Tensor output = body(x);
      impl.running.pop_back();
      if (kept) kept->give_back();
      return output;
    });
  }
  if (place->unit && std::find(impl.running.begin(), impl.running.end(), *place->unit) == impl.running.end()) {
    throw UsageError(
        fmt::format("'{}' was run outside its unit '{}': its parameters are gathered only while that unit runs",
                    place->path, impl.units[*place->unit].name));
  }
  return body(input);
}

World& Sharded::world() {
  return impl_->world;
}
const std::vector<Unit>& Sharded::units() const {
  return impl_->units;
}

double mean_over_ranks(World& world, const at::Tensor& number) {
  if (number.numel() != 1)
    throw UsageError(fmt::format("mean_over_ranks: expected one number, found {}", number.numel()));
  const at::Tensor sum =
      number.detach().reshape({1}).to(world.device(), at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  world.all().all_reduce(sum)->wait();
  return sum.item<double>() / world.size();
}

}  // namespace tessera
