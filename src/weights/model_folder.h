// A model in Hugging Face's layout: config.json, weights, generation_config.json, the tokenizer's files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/json.h"

namespace tessera {

// "BloomForCausalLM"; empty if config.json does not say.
std::string architecture_of(const Json& config);

// Whether the architecture continues text.
bool has_language_head(const Json& config);

class ModelFolder {
 public:
  // Reads config.json; Weights::open(path()) opens the weights. Throws UsageError if the folder or its config.json is
  // missing or broken.
  static ModelFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const Json& config() const { return config_; }
  std::string model_type() const;  // "bloom"; empty if config.json does not say
  std::string architecture() const { return architecture_of(config_); }
  std::optional<Json> generation_config() const;

 private:
  std::filesystem::path path_;
  Json config_;
};

// The tokenizer files with known names that are in the folder, whatever else it holds.
std::vector<std::filesystem::path> tokenizer_files_in(const std::filesystem::path& folder);

// generation_config.json as transformers derives it from a model's config; nothing for a model that does not generate.
std::optional<Json> generation_config_of(const Json& config);

// Whether config.json ties the head to the embedding: transformers' rule, true unless it says no, for models with a
// language head.
bool ties_word_embeddings(const Json& config);

// The config of the same model with weights of this type, "float32" or another of torch's names. transformers 5 writes
// "dtype", and both versions read "torch_dtype": a config keeps the key it has, and neither keeps another type.
Json with_weight_type(Json config, const std::string& type);

// A folder, or a hub name such as bigscience/bloom-560m, looked up where Hugging Face's programs store downloads:
// TRANSFORMERS_CACHE, then HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else hub/ of their home. Throws UsageError that
// says where it looked and which folder to fill.
std::filesystem::path find_model_folder(const std::string& folder_or_name, const Environment& environment);

}  // namespace tessera
