// The checkpoints of a run: written, rotated, resumed.
//
// Collective, between updates. Only rank 0 writes; where it fails, every rank throws the same error.
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
  // All must outlive it. Removes what a run that was killed has left of a checkpoint.
  CheckpointKeeper(World& world, const SavedModel& model, const OutputSettings& output, Listeners& listeners);

  // output_dir/checkpoint-STEP: a model folder, and unless only the model is wanted optimizer.safetensors and
  // trainer_state.json. It appears by one rename. Older ones of this run are then removed as save_total_limit says;
  // those of another run in the same folder stay, except one of the same step.
  void save(Trainer& trainer);
  // Adopts what an earlier part of this run left: its checkpoints in the folder, and the best one anywhere.
  void adopt(const std::filesystem::path& checkpoint, const RunState& state);
  // Of the best evaluation; nothing: it was not saved. The same on every rank.
  const std::optional<std::filesystem::path>& best() const { return best_; }

 private:
  std::filesystem::path folder_of(std::int64_t step) const;
  std::vector<std::int64_t> take_out_old();
  void write(Trainer& trainer, const std::filesystem::path& folder) const;

  World& world_;
  const SavedModel& model_;
  const OutputSettings& output_;
  Listeners& listeners_;
  std::set<std::int64_t> kept_;  // steps of this run's checkpoints that are there
  std::optional<std::filesystem::path> best_;
};

// The folder that the settings ask to resume; none: they do not. Throws UsageError where there is none.
std::optional<std::filesystem::path> checkpoint_to_resume(const OutputSettings& output);
// Whether it is one of those that runs into `output_dir` write.
bool is_in_folder(const std::filesystem::path& checkpoint, const std::filesystem::path& output_dir);
RunState read_checkpoint_state(const std::filesystem::path& checkpoint);
// Optimizer states, loss scale and place of the checkpoint; its weights are the engine's first values already. Under
// any strategy and number of ranks.
void resume(World& world, Trainer& trainer, const SavedModel& model, const std::filesystem::path& checkpoint,
            const RunState& state);

// The weights and buffers of a checkpoint into the engine and the model: load_best_model_at_end.
void load_checkpoint_weights(World& world, Engine& engine, const SavedModel& model,
                             const std::filesystem::path& folder);

}  // namespace tessera
