// Activation checkpointing: of each unit only the input is kept for backward, and the unit is computed again when its
// gradient arrives. Costs one more forward pass; gradients are the same bits, dropout included, since a unit's body is
// a function of its input alone.
#pragma once

#include "model/unit.h"

namespace tessera {

class CheckpointRunner : public UnitRunner {
 public:
  // Units run through `inner`, in the forward pass and again in the backward pass; it must outlive both. Without
  // gradients (NoGradGuard) nothing changes.
  explicit CheckpointRunner(UnitRunner& inner) : inner_(inner) {}

  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override;

 private:
  UnitRunner& inner_;
};

}  // namespace tessera
