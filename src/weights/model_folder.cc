#include "weights/model_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/file.h"
#include "core/hugging_face_cache.h"
#include "core/text.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTokenizerFiles[] = {"tokenizer.json",
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "vocab.txt",
                                           "tokenizer.model",
                                           "spiece.model",
                                           "chat_template.jinja",
                                           "preprocessor_config.json"};

// transformers looks in its own folder alone if that is set; other programs may have filled the hub's.
std::vector<fs::path> hub_caches(const Environment& environment) {
  std::vector<fs::path> caches;
  if (const auto own = hugging_face_path(environment, "TRANSFORMERS_CACHE")) caches.push_back(*own);
  caches.push_back(hub_cache(environment));
  return caches;
}

}  // namespace

ModelFolder ModelFolder::open(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    throw UsageError(fmt::format("{} is not a folder; a model folder holds config.json and weights", path.string()));
  }
  if (!is_there(path / "config.json")) {
    throw UsageError(fmt::format("{} is not a model folder: config.json is missing", path.string()));
  }
  ModelFolder folder;
  folder.path_ = path;
  folder.config_ = read_json_file(path / "config.json");
  if (!folder.config_.is_object()) {
    throw UsageError(fmt::format("{}: expected an object", (path / "config.json").string()));
  }
  return folder;
}

std::string ModelFolder::model_type() const {
  const auto found = config_.find("model_type");
  return found != config_.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<Json> ModelFolder::generation_config() const {
  const fs::path path = path_ / "generation_config.json";
  if (!is_there(path)) return std::nullopt;
  Json config = read_json_file(path);
  if (!config.is_object()) throw UsageError(path.string() + ": expected an object");
  return config;
}

std::vector<fs::path> tokenizer_files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const char* name : kTokenizerFiles) {
    if (is_there(folder / name)) files.push_back(folder / name);
  }
  return files;
}

std::optional<Json> generation_config_of(const Json& config) {
  if (!has_language_head(config)) return std::nullopt;
  Json generation = {{"_from_model_config", true}};
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const auto id = config.find(key);
    if (id != config.end() && !id->is_null()) generation[key] = *id;
  }
  return generation;
}

std::string architecture_of(const Json& config) {
  if (!config.is_object()) return "";
  const Json first = config.value("/architectures/0"_json_pointer, Json());
  return first.is_string() ? first.get<std::string>() : "";
}

bool has_language_head(const Json& config) {
  const std::string name = architecture_of(config);
  return name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel");
}

bool ties_word_embeddings(const Json& config) {
  const auto tie = config.find("tie_word_embeddings");
  const bool said_no = tie != config.end() && tie->is_boolean() && !tie->get<bool>();
  return !said_no && has_language_head(config);
}

Json with_weight_type(Json config, const std::string& type) {
  const bool is_new = config.contains("dtype");
  if (is_new) config["dtype"] = type;
  if (!is_new || config.contains("torch_dtype")) config["torch_dtype"] = type;
  return config;
}

fs::path find_model_folder(const std::string& folder_or_name, const Environment& environment) {
  if (is_there(folder_or_name)) return folder_or_name;
  if (!is_hub_name(folder_or_name)) throw UsageError(fmt::format("there is no model folder {}", folder_or_name));
  std::vector<std::string> tried;
  for (const fs::path& cache : hub_caches(environment)) {
    const fs::path model = cache / hub_folder_name("models", folder_or_name);
    const auto snapshot = cached_snapshot(model);
    if (snapshot && is_there(*snapshot / "config.json")) return *snapshot;
    tried.push_back(model.string());
  }
  throw UsageError(
      fmt::format("there is no model folder {0}, nor is {0} in Hugging Face's cache: fill {1} "
                  "(huggingface-cli download {0}), or name a folder that holds config.json and the weights",
                  folder_or_name, join(tried, " or ")));
}

}  // namespace tessera
