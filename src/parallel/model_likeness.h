// All ranks must hold the same model before they can share it.
#pragma once

#include <vector>

#include "parallel/flat_unit.h"
#include "tessera/world.h"

namespace tessera {

// Collective. Throws Error on every rank that differs from rank 0, naming the first parameter that does and how.
void check_alike(World& world, const std::vector<std::vector<UnitParameter>>& parameters_of_unit);

}  // namespace tessera
