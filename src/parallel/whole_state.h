// A unit's state whole, from the parts of it that the ranks hold, and back: for saving and loading unit by unit.
//
// Between steps, when no gradient is pending. All ranks call it for the same units in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include "parallel/flat_unit.h"

namespace tessera {

// `part` is what this rank holds of a flat state of the unit: its updated() part, float32 (the master, a moment), after
// finish_update. Gives all of it, [padded_numel]: on `device`, where collectives work, or, where every rank has it
// whole, `part` itself. Collective over the shard group where the unit is split.
at::Tensor gather_whole(const FlatUnit& unit, const UnitGroups& groups, const at::Tensor& part, at::Device device);

// The other way round: `part` takes this rank's share of `whole`, which is the same on every rank.
void take_part(const FlatUnit& unit, const at::Tensor& part, const at::Tensor& whole);

// The parameter's part of a flat state, in its shape.
at::Tensor slot_of(const at::Tensor& whole, const FlatSlot& slot);

}  // namespace tessera
