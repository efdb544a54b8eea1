// Activation checkpointing: only the input of each unit is kept for backward, and the unit is recomputed when its
// gradient arrives. It costs one more forward pass; gradients have the same bits, dropout included, since a unit's body
// is a function of its input alone.
#pragma once

#include "tessera/unit.h"

namespace tessera {

class CheckpointRunner : public UnitRunner {
 public:
  // Runs units through `inner`, in the forward pass and again in the backward pass; it must outlive both. Without
  // gradients (NoGradGuard) nothing changes.
  explicit CheckpointRunner(UnitRunner& inner) : inner_(inner) {}

  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override;

 private:
  UnitRunner& inner_;
};

}  // namespace tessera
