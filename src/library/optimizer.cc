#include "tessera/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "library/optimizer_impl.h"
#include "library/shard_impl.h"
#include "parallel/gradient_fault.h"

namespace tessera {
namespace {

void check_option(const char* name, double value, bool is_right, const char* allowed) {
  if (!is_right || !std::isfinite(value)) {
    throw UsageError(fmt::format("optimizer: {} is {}: expected {}", name, value, allowed));
  }
}

double checked_learning_rate(double value) {
  check_option("learning_rate", value, value >= 0, "0 or more");
  return value;
}

kernels::AdamW checked(const AdamW& options) {
  check_option("beta1", options.beta1, options.beta1 >= 0 && options.beta1 < 1, "a number in [0, 1)");
  check_option("beta2", options.beta2, options.beta2 >= 0 && options.beta2 < 1, "a number in [0, 1)");
  check_option("eps", options.eps, options.eps > 0, "more than 0");
  check_option("weight_decay", options.weight_decay, options.weight_decay >= 0, "0 or more");
  kernels::AdamW how;
  how.beta1 = options.beta1;
  how.beta2 = options.beta2;
  how.eps = options.eps;
  how.weight_decay = options.weight_decay;
  how.decoupled = options.decoupled;
  return how;
}

kernels::Sgd checked(const Sgd& options) {
  check_option("momentum", options.momentum, options.momentum >= 0, "0 or more");
  check_option("dampening", options.dampening, options.dampening >= 0, "0 or more");
  check_option("weight_decay", options.weight_decay, options.weight_decay >= 0, "0 or more");
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    throw UsageError("optimizer: nesterov needs momentum and no dampening");
  }
  kernels::Sgd how;
  how.momentum = options.momentum;
  how.dampening = options.dampening;
  how.weight_decay = options.weight_decay;
  how.nesterov = options.nesterov;
  return how;
}

Sharded::Impl& free_of_others(Sharded& sharded) {
  Sharded::Impl& impl = sharded.impl();
  impl.check_idle("Optimizer");
  if (impl.has_optimizer) throw UsageError("this tessera::Sharded has an optimizer already: one each");
  return impl;
}

}  // namespace

Optimizer::Impl::Impl(Sharded& its_sharded, const OptimizerOptions& options, double its_learning_rate)
    : learning_rate(checked_learning_rate(its_learning_rate)),
      sharded(free_of_others(its_sharded)),
      optimizer(*sharded.engine, options) {
  sharded.has_optimizer = true;
}

Optimizer::Optimizer(Sharded& sharded, const AdamW& options)
    : impl_(std::make_unique<Impl>(sharded, checked(options), options.learning_rate)) {}

Optimizer::Optimizer(Sharded& sharded, const Sgd& options)
    : impl_(std::make_unique<Impl>(sharded, checked(options), options.learning_rate)) {}

Optimizer::~Optimizer() {
  impl_->sharded.has_optimizer = false;
}

StepResult Optimizer::step(const StepOptions& options) {
  Sharded::Impl& sharded = impl_->sharded;
  sharded.check_idle("step()");
  check_option("max_norm", options.max_norm, options.max_norm >= 0, "0 (no clipping) or more");
  check_option("divisor", options.divisor, options.divisor >= 0, "0 (the number of losses) or more");
  if (!sharded.gradients_are_complete) {
    throw UsageError(sharded.num_losses == 0
                         ? "step() was called without a gradient: call backward() first"
                         : "step() was called after accumulate(): the last micro-step is backward()'s");
  }
  sharded.watch.check();
  UpdateArguments arguments;
  arguments.learning_rate = impl_->learning_rate;
  arguments.max_norm = options.max_norm;
  arguments.divisor =
      options.divisor > 0 ? options.divisor : static_cast<double>(sharded.num_losses) * sharded.world.size();
  const double loss_scale = sharded.scaler ? sharded.scaler->scale() : 1;
  arguments.divisor *= loss_scale;
  UpdateResult result;
  sharded.guarded("step()", [&] {
    result = impl_->optimizer.update(arguments);
    if (sharded.scaler) sharded.scaler->after_step(result.skipped);
  });
  sharded.num_losses = 0;
  sharded.gradients_are_complete = false;
  return {result.gradient_norm, result.skipped, loss_scale, result.skipped ? describe(result.faults) : ""};
}

double Optimizer::learning_rate() const {
  return impl_->learning_rate;
}
void Optimizer::set_learning_rate(double learning_rate) {
  impl_->learning_rate = checked_learning_rate(learning_rate);
}
std::int64_t Optimizer::num_updates() const {
  return impl_->optimizer.num_updates();
}

}  // namespace tessera
