// Whether the ranks and their nodes are what a strategy needs.
#pragma once

#include "parallel/spread_options.h"
#include "tessera/world.h"

namespace tessera {

// Throws UsageError if not. The same on every rank.
void check_world(const World& world, const SpreadOptions& spread);

}  // namespace tessera
