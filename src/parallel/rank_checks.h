// Checks before the first step: whether the ranks and their nodes are what a strategy needs, and whether all ranks hold
// the same model and spread it in the same way.
#pragma once

#include <torch/nn/module.h>

#include <vector>

#include "parallel/engine.h"
#include "parallel/placement.h"
#include "tessera/unit.h"
#include "tessera/world.h"

namespace tessera {

// Throws UsageError if the ranks or their nodes are not what the strategy needs. The same on every rank.
void check_world(const World& world, const SpreadOptions& spread);

// Collective. Throws Error (status 42) on every rank that differs from rank 0, naming the first difference: in the
// engine's options, in the parameters (name, order, shape, type, device, trained or frozen, with or without weight
// decay, unit), in the list of units, in the module's buffers. Values are not compared.
void check_ranks_match(World& world, const torch::nn::Module& model, const std::vector<Unit>& units,
                       const EngineOptions& options, const std::vector<std::vector<UnitParameter>>& parameters_of_unit);

}  // namespace tessera
