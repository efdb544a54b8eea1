#include "weights/model_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "weights/mapped_file.h"

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

// organisation/name, of the characters that the hub allows: anything else can only be a path.
bool is_hub_name(const std::string& name) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !name.empty() && !name.starts_with('/') && !name.starts_with('.') && !name.ends_with('/') &&
         std::count(name.begin(), name.end(), '/') <= 1 && std::all_of(name.begin(), name.end(), allowed);
}

fs::path home_of_user(const Environment& environment) {
  return environment.find("HOME").value_or(".");
}

// A variable with a path, whose ~ is the user's home, as Hugging Face reads it.
std::optional<fs::path> path_in(const Environment& environment, const char* name) {
  const auto value = environment.find(name);
  if (!value) return std::nullopt;
  if (*value == "~" || value->starts_with("~/"))
    return home_of_user(environment) / fs::path(*value).lexically_relative("~");
  return *value;
}

// transformers looks in its own folder alone if that is set; other programs may have filled the hub's.
std::vector<fs::path> hub_caches(const Environment& environment) {
  std::vector<fs::path> caches;
  if (const auto own = path_in(environment, "TRANSFORMERS_CACHE")) caches.push_back(*own);
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto cache = path_in(environment, name)) {
      caches.push_back(*cache);
      return caches;
    }
  }
  caches.push_back(hugging_face_home(environment) / "hub");
  return caches;
}

// The folder of the revision that refs/main names; none if it is not there.
std::optional<fs::path> snapshot_of(const fs::path& model) {
  const fs::path main = model / "refs/main";
  const std::string revision = is_there(main) ? std::string(trim(read_file(main))) : "";
  const fs::path snapshot = model / "snapshots" / revision;
  // A file's text must never lead out of the cache.
  if (!is_plain_name(revision) || !is_there(snapshot / "config.json")) return std::nullopt;
  return snapshot;
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

fs::path hugging_face_home(const Environment& environment) {
  if (const auto home = path_in(environment, "HF_HOME")) return *home;
  return path_in(environment, "XDG_CACHE_HOME").value_or(home_of_user(environment) / ".cache") / "huggingface";
}

fs::path find_model_folder(const std::string& folder_or_name, const Environment& environment) {
  if (is_there(folder_or_name)) return folder_or_name;
  if (!is_hub_name(folder_or_name)) throw UsageError(fmt::format("there is no model folder {}", folder_or_name));
  std::string key = folder_or_name;
  if (const std::size_t slash = key.find('/'); slash != std::string::npos) key.replace(slash, 1, "--");
  std::vector<std::string> tried;
  for (const fs::path& cache : hub_caches(environment)) {
    const fs::path model = cache / ("models--" + key);
    if (const auto found = snapshot_of(model)) return *found;
    tried.push_back(model.string());
  }
  throw UsageError(
      fmt::format("there is no model folder {0}, nor is {0} in Hugging Face's cache: fill {1} "
                  "(huggingface-cli download {0}), or name a folder that holds config.json and the weights",
                  folder_or_name, join(tried, " or ")));
}

}  // namespace tessera
