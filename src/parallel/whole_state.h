// A unit's state whole, from the parts of it that the ranks hold, and back: for saving and loading unit by unit.
//
// Between steps, when no gradient is pending. All ranks call it for the same units in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include "parallel/flat_unit.h"

namespace tessera {

// What the last update has begun may still write the master, or read it: waits for that.
void settle(FlatUnit& unit);

// `part` is what this rank holds of a flat state of the unit: its range(), float32 (the master, a moment). Gives all of
// it, [padded_numel], on `device`, where collectives work; where every rank has it whole that is `part` itself.
// Collective over the shard group where the unit is split.
at::Tensor gather_whole(const FlatUnit& unit, const UnitGroups& groups, const at::Tensor& part, at::Device device);

// The master and all that is made from it take `values`: [padded_numel], the same on every rank, any device.
// Collective where the ranks update parts and keep the parameters whole.
void replace_values(FlatUnit& unit, const at::Tensor& values);

// The parameter's part of a flat state, in its shape.
at::Tensor slot_of(const at::Tensor& whole, const FlatSlot& slot);

}  // namespace tessera
