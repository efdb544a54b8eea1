// The pass of a rank that has no batch while others have one: it runs every unit without computing anything, so that
// the others' all-gathers complete.
#pragma once

#include <ATen/ops/zeros.h>

#include "tessera/unit.h"

namespace tessera {

inline void pass_idly(const UnitModel& model, UnitRunner& runner, at::Device device) {
  const at::Tensor nothing = at::zeros({1}, at::device(device));
  for (const Unit& unit : model.units()) runner.run(unit, nothing, [](const at::Tensor& input) { return input; });
}

}  // namespace tessera
