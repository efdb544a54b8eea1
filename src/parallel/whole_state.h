// Assembles a unit's whole state from the ranks' parts, and takes it apart: for saving and loading unit by unit.
//
// Between steps, when no gradient is pending. All ranks make the calls for the same units in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include "parallel/flat_unit.h"

namespace tessera {

// `part` is this rank's updated() part of a flat float32 state of the unit (the master, a moment), after finish_update.
// Returns the whole state, [padded_numel]: on `device`, where collectives work; or `part` itself if every rank has it
// whole. Collective over the shard group if the unit is split.
at::Tensor gather_whole(const FlatUnit& unit, const UnitGroups& groups, const at::Tensor& part, at::Device device);

// The reverse: copies this rank's part of `whole`, which is the same on every rank, into `part`.
void take_part(const FlatUnit& unit, const at::Tensor& part, const at::Tensor& whole);

// The parameter's part of a flat state, in its shape.
at::Tensor slot_of(const at::Tensor& whole, const FlatSlot& slot);

}  // namespace tessera
