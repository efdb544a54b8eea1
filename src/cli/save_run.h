// What a run leaves of its model: folders, which for a text model transformers loads, and checkpoints.
//
// Collective, between updates. Only rank 0 touches files; where it fails, every rank throws the same error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "model/unit.h"
#include "tessera/world.h"
#include "train/listener.h"
#include "train/trainer.h"

namespace tessera {

struct FileToCopy {
  std::filesystem::path from;
  std::string name;  // in the folder that is written
};

// A model as its folder holds it.
struct SavedModel {
  const UnitModel& model;
  Json config;
  std::optional<Json> generation_config{};
  std::vector<FileToCopy> files{};  // a tokenizer's
};

// Makes the folder and tries to write in it, before hours are spent. Throws UsageError with the system's reason.
void prepare_output_folder(World& world, const std::filesystem::path& folder);

// model.safetensors (parameters in float32, written unit by unit, and buffers), the files to copy,
// generation_config.json, config.json last; each file appears whole.
void save_model_folder(World& world, Engine& engine, const SavedModel& model, const std::filesystem::path& folder);

// The checkpoints of a run.
class CheckpointKeeper {
 public:
  // All must outlive it.
  CheckpointKeeper(World& world, const SavedModel& model, const OutputSettings& output, Listeners& listeners)
      : world_(world), model_(model), output_(output), listeners_(listeners) {}

  // output_dir/checkpoint-STEP: a model folder, and unless only the model is wanted optimizer.safetensors and
  // trainer_state.json. It appears by one rename. Older ones then go as save_total_limit says.
  void save(Trainer& trainer);
  // Knows of the best one that an earlier part of this run has saved.
  void remember_best(const RunState& state);
  // Of the best evaluation; nothing: it was not saved. The same on every rank.
  std::optional<std::filesystem::path> best() const;

 private:
  std::filesystem::path folder_of(std::int64_t step) const;
  void write(Trainer& trainer, const std::filesystem::path& folder) const;

  World& world_;
  const SavedModel& model_;
  const OutputSettings& output_;
  Listeners& listeners_;
  std::set<std::int64_t> saved_;
  std::optional<std::int64_t> best_step_;
};

// The folder that the settings ask to go on with; nothing: they do not. Throws UsageError where there is none.
std::optional<std::filesystem::path> checkpoint_to_resume(const OutputSettings& output);
RunState read_checkpoint_state(const std::filesystem::path& checkpoint);
// Moments, loss scale and place of the checkpoint; its weights are the engine's first values already. Under any
// strategy and number of ranks.
void resume(World& world, Trainer& trainer, const SavedModel& model, const std::filesystem::path& checkpoint,
            const RunState& state);

// The weights and buffers of a checkpoint into the engine and the model: load_best_model_at_end.
void load_checkpoint_weights(World& world, Engine& engine, const SavedModel& model,
                             const std::filesystem::path& folder);

}  // namespace tessera
