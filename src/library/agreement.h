// What only rank 0 does (files), and all ranks must know the end of.
#pragma once

#include <functional>

#include "tessera/world.h"

namespace tessera {

// Collective. Rank 0 runs `work`; where it throws, every rank throws the same message with the same exit status.
void on_first_rank(World& world, const std::function<void()>& work);

}  // namespace tessera
