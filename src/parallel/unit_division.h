// Which parameter of a model belongs to which unit.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <string>
#include <vector>

#include "parallel/flat_unit.h"
#include "tessera/unit.h"

namespace tessera {

// Each parameter once, under its first name: in the unit that holds it, or in the root (which comes last) if no unit or
// several hold it. `is_exempt_from_decay` may be empty: none is exempt.
std::vector<std::vector<UnitParameter>> divide(torch::nn::Module& model, const std::vector<Unit>& units,
                                               const std::function<bool(const std::string&)>& is_exempt_from_decay);

}  // namespace tessera
