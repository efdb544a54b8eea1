// Going on from a checkpoint: which one, and its state into a run. Collective; if a rank fails, every rank throws the
// same error.
//
// checkpoint.h tells the forms of a checkpoint.
#pragma once

#include <filesystem>
#include <optional>

#include "state/checkpoint.h"
#include "state/model_output.h"
#include "tessera/world.h"
#include "train/trainer.h"

namespace tessera {

// The checkpoint to resume from; none if the settings do not ask for one. All of its bytes have been checked; broken
// ones are named and skipped, or refused if named by the user. Throws UsageError if there is none. Collective.
std::optional<Checkpoint> checkpoint_to_resume(World& world, const OutputSettings& output);
// Restores the checkpoint's weights, optimizer states, loss scale and run state. Weights that are not sharded are
// already the engine's first values. Works under any strategy and number of ranks.
void resume(World& world, Trainer& trainer, const SavedModel& model, const Checkpoint& checkpoint,
            const RunState& state);

// Loads a checkpoint's weights and buffers into the engine and the model: for load_best_model_at_end.
void load_checkpoint_weights(World& world, Engine& engine, const SavedModel& model,
                             const std::filesystem::path& folder);

}  // namespace tessera
