// Going on from a checkpoint: which one, and its state into a run. Collective; if a rank fails, every rank throws the
// same error.
//
// Three forms: what all ranks wrote (read_state.h); older ones, a model folder with optimizer.safetensors and
// trainer_state.json; another program's (foreign_state.h).
#pragma once

#include <filesystem>
#include <optional>

#include "state/model_output.h"
#include "tessera/world.h"
#include "train/trainer.h"

namespace tessera {

// The folder to resume from; none if the settings do not ask for one. All of its bytes have been checked; broken ones
// are named and passed over, or refused if named by the user. Throws UsageError if there is none. Collective.
std::optional<std::filesystem::path> checkpoint_to_resume(World& world, const OutputSettings& output);
// Restores the checkpoint's weights, optimizer states, loss scale and run state. Weights that are not sharded are
// already the engine's first values. Works under any strategy and number of ranks.
void resume(World& world, Trainer& trainer, const SavedModel& model, const std::filesystem::path& checkpoint,
            const RunState& state);

// Loads a checkpoint's weights and buffers into the engine and the model: for load_best_model_at_end.
void load_checkpoint_weights(World& world, Engine& engine, const SavedModel& model,
                             const std::filesystem::path& folder);

}  // namespace tessera
