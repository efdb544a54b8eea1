// The folder in which a run saves its model; transformers loads that of a text model.
//
// Collective, between updates. Only rank 0 touches files; if that fails, every rank throws the same error.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/json.h"
#include "parallel/engine.h"
#include "settings/train_settings.h"
#include "tessera/unit.h"
#include "tessera/world.h"

namespace tessera {

inline constexpr const char* kWeightsFile = "model.safetensors";

struct FileToCopy {
  std::filesystem::path from;
  std::string name;  // in the written folder
};

// A model and what else goes into its folder.
struct SavedModel {
  const UnitModel& model;
  Json config;
  std::optional<Json> generation_config{};
  std::vector<FileToCopy> files{};  // a tokenizer's
};

// Throws UsageError if a run would replace the model that lies in its output folder, though it neither resumes nor was
// told to overwrite it. One that Slurm or `tessera launch` starts again is the same run, and goes on. Not collective.
void check_replaces_no_model(const OutputSettings& output, const Environment& environment);

// Creates the folder and tries to write in it, before hours of training. Throws UsageError with the system's reason.
void prepare_output_folder(World& world, const std::filesystem::path& folder);

// Everything but the weights, into a folder that is there: the files to copy, generation_config.json, config.json last;
// each file appears complete. A folder that someone has moved away is not made again: the next checkpoints would be in
// it, and the others where it went. Not collective.
void write_model_files(const SavedModel& model, const std::filesystem::path& folder);

// The same and model.safetensors (parameters in float32, written unit by unit, and buffers), which comes first.
void save_model_folder(World& world, Engine& engine, const SavedModel& model, const std::filesystem::path& folder);

}  // namespace tessera
