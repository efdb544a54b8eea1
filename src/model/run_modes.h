// Ways to run a model's units other than plain training: recomputing them in backward, evaluating, and running them
// without a batch.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "tessera/unit.h"

namespace tessera {

// Activation checkpointing: only the input of each unit is kept for backward, and the unit is recomputed when its
// gradient arrives. It costs one more forward pass; gradients have the same bits, dropout included, since a unit's body
// is a function of its input alone.
class CheckpointRunner : public UnitRunner {
 public:
  // Runs units through `inner`, in the forward pass and again in the backward pass; it must outlive both. Without
  // gradients (NoGradGuard) nothing changes.
  explicit CheckpointRunner(UnitRunner& inner) : inner_(inner) {}

  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override;

 private:
  UnitRunner& inner_;
};

// Puts a model in evaluation mode for the object's lifetime.
class Evaluating {
 public:
  explicit Evaluating(torch::nn::Module& model) : model_(model), was_training_(model.is_training()) { model_.eval(); }
  ~Evaluating() { model_.train(was_training_); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  torch::nn::Module& model_;
  bool was_training_;
};

// The pass of a rank that has no batch while others have one: it runs every unit without computing anything, so that
// the others' all-gathers complete.
void pass_idly(const UnitModel& model, UnitRunner& runner, at::Device device);

}  // namespace tessera
