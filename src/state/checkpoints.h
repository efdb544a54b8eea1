// The checkpoints of a run: written, rotated, resumed.
//
// Collective, between updates. Only rank 0 writes; if that fails, every rank throws the same error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "state/model_output.h"
#include "tessera/world.h"
#include "train/listener.h"
#include "train/trainer.h"

namespace tessera {

class CheckpointKeeper {
 public:
  // All arguments must outlive it. Removes incomplete checkpoints of a run that was killed.
  CheckpointKeeper(World& world, const SavedModel& model, const OutputSettings& output, Listeners& listeners);

  // output_dir/checkpoint-STEP: a model folder and, unless only the model is wanted, optimizer.safetensors and
  // trainer_state.json. It appears by one rename. Then older ones of this run are removed as save_total_limit says;
  // those of another run in the same folder stay, except one of the same step.
  void save(Trainer& trainer);
  // Adopts what an earlier part of this run left: its checkpoints in the folder, and the best one anywhere.
  void adopt(const std::filesystem::path& checkpoint, const RunState& state);
  // The checkpoint of the best evaluation; nothing if it was not saved. The same on every rank.
  const std::optional<std::filesystem::path>& best() const { return best_; }

 private:
  std::filesystem::path folder_of(std::int64_t step) const;
  std::vector<std::int64_t> take_out_old();
  void write(Trainer& trainer, const std::filesystem::path& folder) const;

  World& world_;
  const SavedModel& model_;
  const OutputSettings& output_;
  Listeners& listeners_;
  std::set<std::int64_t> kept_;  // steps of this run's existing checkpoints
  std::optional<std::filesystem::path> best_;
};

// The folder to resume from; none if the settings do not ask for one. Throws UsageError if they do and it is missing.
std::optional<std::filesystem::path> checkpoint_to_resume(const OutputSettings& output);
// Whether the checkpoint is directly in `output_dir`.
bool is_in_folder(const std::filesystem::path& checkpoint, const std::filesystem::path& output_dir);
RunState read_checkpoint_state(const std::filesystem::path& checkpoint);
// Restores the checkpoint's optimizer states, loss scale and run state; its weights are already the engine's first
// values. Works under any strategy and number of ranks.
void resume(World& world, Trainer& trainer, const SavedModel& model, const std::filesystem::path& checkpoint,
            const RunState& state);

// Loads a checkpoint's weights and buffers into the engine and the model: for load_best_model_at_end.
void load_checkpoint_weights(World& world, Engine& engine, const SavedModel& model,
                             const std::filesystem::path& folder);

}  // namespace tessera
