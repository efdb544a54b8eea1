// A text job's model and tokenizer, from the files that the settings name.
//
// Every rank reads the same files and gets the same result or refusal.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "core/environment.h"
#include "core/json.h"
#include "data/tokenizer/tokenizer.h"
#include "jobs/jobs.h"
#include "model/language_model.h"

namespace tessera {

struct OpenedModel {
  std::shared_ptr<LanguageModel> model;  // on the meta device
  Json config;                           // of the folder that will be saved
  std::optional<Json> generation_config;
  Tokenizer tokenizer;
  std::filesystem::path tokenizer_folder;  // with its other files; empty: there are none
  std::vector<FileToCopy> tokenizer_files;
  std::filesystem::path weights_folder;  // empty: from scratch
  std::vector<std::int64_t> eos_ids;
};

// Makes the config.json of a model from scratch that has none.
using ScratchConfig = Json (*)(const ModelSettings& settings, const Tokenizer& tokenizer);

// The model of --model_name_or_path, that of --config_name from scratch, or else that of `config`. Throws UsageError if
// a folder has no tokenizer, a config is invalid, or a file is missing.
OpenedModel open_text_model(const TrainSettings& settings, const Environment& environment,
                            ScratchConfig config = nullptr);

// The engine's initial values: the file's, or fresh ones that depend on the seed alone.
ParameterSource first_values_of(const OpenedModel& model, std::uint64_t seed);
ParameterSource fresh_values_of(const LanguageModel& model, std::uint64_t seed);

// The settings of such a job's model, and what is missing among them: JobTraits::declare_model and ::check.
void declare_text_model(Schema& schema, DeclaredSettings& s);
void check_text_model(const Schema& schema, const DeclaredSettings& s, bool needs_data);

}  // namespace tessera
