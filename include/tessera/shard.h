// A torch::nn::Module of your own, spread over the ranks by one word: DDP, ZeRO or FSDP (tessera/spread.h).
//
//   tessera::Sharded sharded(world, *model, {.spread = {.strategy = "full_shard"}});
//   tessera::Optimizer optimizer(sharded, tessera::AdamW{.learning_rate = 1e-3});      // tessera/optimizer.h
//   for (...) {
//     at::Tensor loss = sharded.forward([&] { return loss_of(model->forward(x, sharded), y); });
//     sharded.backward(loss);
//     optimizer.step();
//   }
//   tessera::save_weights(sharded, "model.safetensors");                               // tessera/checkpoint.h
//
// Parameters are gathered one unit at a time. There are three ways to define the units:
//   - Define none: the whole model is one unit. Its code stays as it is: forward([&] { return model->forward(x); }).
//     Gradients and optimizer state are split as the strategy says; the parameters are whole from forward to backward.
//   - The model is a torch::nn::Sequential: each child is a unit, and forward(x) runs them. No code changes.
//   - The model's forward takes a UnitRunner and runs its blocks with runner.run(block, x) (tessera/unit.h). Pass
//     `.units = tessera::units_of<Block>(*model)`, or derive the model from UnitModel. This Sharded is the runner.
//
// Order: forward, backward, step; with several micro-steps per update: forward, accumulate, ..., forward, backward,
// step. There is no zero_grad: a step consumes the gradients. Every rank makes the same calls in the same order, each
// with its own part of the batch. To evaluate, call forward under torch::NoGradGuard after a step.
// Buffers (batch-norm statistics): all ranks take rank 0's before each step's first pass, as in DDP.
// Lifetime: world, then model, then Sharded, then Optimizer; each must outlive those after it. When the Sharded is
// destroyed, losses must be destroyed or never used again. While it lives, read parameters only inside forward (in a
// unit's body: that unit's), and do not add, replace, convert, move, freeze or unfreeze any, nor give the model to
// another Sharded. After its destruction, a model whose parameters were split is empty: save first, by save_weights
// (torch::save would write a file without weights).
// Threads: one at a time.
// Wrong use and bad input throw std::runtime_error with one message. After an exception from forward, backward or
// step on any rank, the Sharded cannot be used again; run_rank (tessera/world.h) stops the other ranks.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/spread.h"
#include "tessera/unit.h"
#include "tessera/world.h"

namespace tessera {

struct ShardOptions {
  SpreadOptions spread{};  // strategy, offload, prefetch
  // Empty: those of a UnitModel, the children of a Sequential, else the whole model as one unit. Parameters in no unit,
  // or in several, form the root, which is whole during a pass.
  std::vector<Unit> units{};
  // What the model computes in: float32, bfloat16 or float16 (with a loss scale like torch's GradScaler). Inputs must
  // have this type too; buffers keep theirs, so libtorch's batch norm works only in float32. The values that the
  // optimizer updates are always float32.
  at::ScalarType compute_type = at::kFloat;
  std::optional<at::ScalarType> reduce_type{};  // of gradients sent between ranks; none: the compute type
  bool accumulates = false;                     // accumulate() will be used
  bool recomputes = false;                      // keep only the inputs of units for backward and recompute the rest
  // By name: parameters without weight decay, e.g. biases and norms.
  std::function<bool(const std::string& name)> is_exempt_from_decay{};
  // The parameters' first values, asked for unit by unit: the model may then be on the meta device, and no rank ever
  // holds more of it than the strategy says plus one unit. Called on rank 0 only, unless spread.sync_module_states is
  // off. Empty: the parameters' own values.
  ParameterSource first_values{};
};

class Sharded : public UnitRunner {
 public:
  // Collective. Moves the model to the world's device, unit by unit. Every rank starts with rank 0's values. Throws
  // if the strategy is not known, the ranks' models do not match, or a unit is not part of this model.
  Sharded(World& world, torch::nn::Module& model, const ShardOptions& options = {});
  ~Sharded() override;
  Sharded(const Sharded&) = delete;
  Sharded& operator=(const Sharded&) = delete;

  // Runs `compute`, within which the model may run, and returns its result (a loss, logits, anything).
  template <std::invocable Compute>
  std::decay_t<std::invoke_result_t<Compute&>> forward(Compute&& compute) {
    if constexpr (std::is_void_v<std::invoke_result_t<Compute&>>) {
      pass([&] { compute(); });
    } else {
      std::optional<std::decay_t<std::invoke_result_t<Compute&>>> result;
      pass([&] { result.emplace(compute()); });
      return std::move(*result);
    }
  }
  // The output of a torch::nn::Sequential.
  at::Tensor forward(const at::Tensor& input);

  // For a loss that forward returned. Call accumulate in every micro-step but the last, and backward in the last.
  void accumulate(const at::Tensor& loss);
  void backward(const at::Tensor& loss);

  // Called by the model. A module that is not a unit just runs.
  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override;
  using UnitRunner::run;

  World& world();
  const std::vector<Unit>& units() const;

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  void pass(const std::function<void()>& compute);

  std::unique_ptr<Impl> impl_;
};

// The mean over all ranks of one number, e.g. each rank's loss. Collective; the same bits on every rank.
double mean_over_ranks(World& world, const at::Tensor& number);

}  // namespace tessera
