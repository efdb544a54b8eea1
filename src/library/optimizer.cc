#include "tessera/optimizer.h"

#include <fmt/format.h>

#include "comm/exchange.h"
#include "core/error.h"
#include "library/shard_impl.h"
#include "parallel/unit_error.h"

namespace tessera {
namespace {

double checked_learning_rate(double value) {
  check_number("learning_rate", value, value >= 0, "0 or more");
  return value;
}

OptimizerChoice choice_of(const AdamW& options) {
  check_number("eps", options.eps, options.eps > 0, "more than 0");
  return choose_optimizer(
      options.decoupled ? "adamw" : "adam",
      {.beta1 = options.beta1, .beta2 = options.beta2, .epsilon = options.eps, .weight_decay = options.weight_decay});
}

OptimizerChoice choice_of(const Sgd& options) {
  return choose_optimizer("sgd", {.weight_decay = options.weight_decay,
                                  .momentum = options.momentum,
                                  .dampening = options.dampening,
                                  .nesterov = options.nesterov});
}

Sharded::Impl& free_of_others(Sharded& sharded) {
  Sharded::Impl& impl = sharded.impl();
  impl.check_idle("Optimizer");
  if (impl.has_optimizer) throw UsageError("this tessera::Sharded already has an optimizer: create only one");
  return impl;
}

// All of it, also what the optimizer does not read: ranks that differ there were not meant to.
std::string describe(const OptimizerChoice& choice, double learning_rate) {
  const OptimizerNumbers& n = choice.numbers;
  return fmt::format(
      "{} with learning rate {}, betas {} and {}, eps {}, weight decay {}, momentum {}, dampening {}, nesterov {}",
      choice.optimizer->name, learning_rate, n.beta1, n.beta2, n.epsilon, n.weight_decay, n.momentum, n.dampening,
      n.nesterov);
}

// Ranks that update differently would go apart without a word.
void check_ranks_match(World& world, const std::string& own) {
  if (world.size() == 1) return;
  const std::string first = text_of_first_rank(world, own, "optimizer");
  if (own == first) return;
  throw rendezvous_error(
      fmt::format("rank {} does not have rank 0's optimizer: it is {} there, and {} here", world.rank(), first, own));
}

}  // namespace

Optimizer::Impl::Impl(Sharded& its_sharded, const OptimizerChoice& choice, double its_learning_rate)
    : learning_rate(checked_learning_rate(its_learning_rate)), sharded(free_of_others(its_sharded)) {
  check_ranks_match(sharded.world, describe(choice, learning_rate));
  sharded.step.set_optimizer(choice);
  sharded.has_optimizer = true;
}

Optimizer::Optimizer(Sharded& sharded, const AdamW& options)
    : impl_(std::make_unique<Impl>(sharded, choice_of(options), options.learning_rate)) {}

Optimizer::Optimizer(Sharded& sharded, const Sgd& options)
    : impl_(std::make_unique<Impl>(sharded, choice_of(options), options.learning_rate)) {}

Optimizer::Optimizer(Sharded& sharded, const NamedOptimizer& options)
    : impl_(std::make_unique<Impl>(sharded, choose_optimizer(options.name, options.numbers), options.learning_rate)) {}

Optimizer::~Optimizer() {
  impl_->sharded.step.remove_optimizer();
  impl_->sharded.has_optimizer = false;
}

StepResult Optimizer::step(const StepOptions& options) {
  Sharded::Impl& sharded = impl_->sharded;
  sharded.check_idle("step()");
  check_number("max_norm", options.max_norm, options.max_norm >= 0, "0 (no clipping) or more");
  check_number("divisor", options.divisor, options.divisor >= 0, "0 (the number of losses) or more");
  if (!sharded.gradients_are_complete) {
    throw UsageError(sharded.num_losses == 0
                         ? "step() was called without a gradient: call backward() first"
                         : "step() was called after accumulate(): call backward() for the last micro-step");
  }
  sharded.watch.check();
  StepArguments arguments;
  arguments.learning_rate = impl_->learning_rate;
  arguments.max_norm = options.max_norm;
  arguments.divisor =
      options.divisor > 0 ? options.divisor : static_cast<double>(sharded.num_losses) * sharded.world.size();
  StepOutcome outcome;
  sharded.guarded("step()", [&] { outcome = sharded.step.update(arguments); });
  sharded.num_losses = 0;
  sharded.gradients_are_complete = false;
  return {outcome.gradient_norm, outcome.skipped, outcome.loss_scale, outcome.skipped ? describe(outcome.faults) : ""};
}

double Optimizer::learning_rate() const {
  return impl_->learning_rate;
}
void Optimizer::set_learning_rate(double learning_rate) {
  impl_->learning_rate = checked_learning_rate(learning_rate);
}
std::int64_t Optimizer::num_updates() const {
  return impl_->sharded.step.optimizer().num_updates();
}

}  // namespace tessera
