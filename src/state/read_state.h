// Reads what state_snapshot.h wrote, on any number of ranks under any strategy; each reads only its own part.
//
// Collective, between steps.
#pragma once

#include "parallel/train_step.h"
#include "state/optimizer_file.h"
#include "state/unit_file.h"
#include "weights/checkpoint_reader.h"

namespace tessera {

// Reads parameters, buffers and the optimizer's states into the model. Throws the same error on every rank if any of
// them finds a damaged or missing byte, or if the tensors are not the model's; the values are then unusable.
OptimizerProgress read_state(const SpreadModel& spread, const TrainStep& step, CheckpointReader& reader);
// Only parameters and buffers.
void read_model_state(const SpreadModel& spread, CheckpointReader& reader);

}  // namespace tessera
