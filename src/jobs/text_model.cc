#include "jobs/text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/json_reader.h"
#include "model/parameters.h"
#include "settings/load.h"
#include "settings/shared.h"
#include "weights/load_weights.h"
#include "weights/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct TokenizerPlace {
  fs::path path;                  // what Tokenizer::load reads
  std::vector<FileToCopy> files;  // to be saved with the model
};

std::vector<FileToCopy> files_in(const fs::path& folder) {
  std::vector<FileToCopy> files;
  for (const fs::path& file : tokenizer_files_in(folder)) files.push_back({file, file.filename().string()});
  return files;
}

TokenizerPlace find_tokenizer(const TrainSettings& settings, const fs::path& model_folder,
                              const Environment& environment) {
  const std::string& name = settings.model.tokenizer_name;
  if (name.empty()) {
    const std::vector<FileToCopy> files = files_in(model_folder);
    if (files.empty())
      throw UsageError(fmt::format("{} has no tokenizer: give --tokenizer_name PATH", model_folder.string()));
    return {model_folder, files};
  }
  const fs::path path = find_model_folder(name, environment);
  if (fs::is_directory(path)) return {path, files_in(path)};
  if (path.filename() == "tokenizer.json" || path.filename() == "tokenizer.model") {
    return {path, files_in(path.parent_path())};
  }
  return {path, {{path, "tokenizer.json"}}};
}

Json config_from_scratch(const std::string& file) {
  Json config = read_json_file(file);
  if (!config.is_object()) throw UsageError(file + ": expected a JSON object");
  return config;
}

std::vector<std::int64_t> ids_at(const Json& config, const std::string& origin) {
  return JsonReader(JsonSource{&config, origin}).integers("eos_token_id", 0, std::numeric_limits<std::int64_t>::max());
}

// The ids that end a text: the generation config's, else the config's, and the tokenizer's own.
std::vector<std::int64_t> eos_ids_of(const Json& config, const std::optional<Json>& generation,
                                     const Tokenizer& tokenizer, const std::string& origin) {
  std::vector<std::int64_t> ids = generation && generation->contains("eos_token_id")
                                      ? ids_at(*generation, "generation_config.json")
                                      : ids_at(config, origin);
  const auto own = tokenizer.eos_id();
  if (own && std::ranges::find(ids, *own) == ids.end()) ids.push_back(*own);
  return ids;
}

}  // namespace

OpenedModel open_text_model(const TrainSettings& settings, const Environment& environment, ScratchConfig scratch) {
  const ModelSettings& model = settings.model;
  fs::path folder;
  Json config;
  std::optional<Json> generation;
  std::string origin = "the model's settings";
  if (!model.name_or_path.empty()) {
    const ModelFolder opened = ModelFolder::open(find_model_folder(model.name_or_path, environment));
    folder = opened.path();
    config = opened.config();
    generation = opened.generation_config();
    origin = (folder / "config.json").string();
  } else if (!model.config_name.empty()) {
    config = config_from_scratch(model.config_name);
    origin = model.config_name;
  }
  const auto make = [&] { return make_language_model(config, origin, at::dtype(at::kFloat).device(at::kMeta)); };
  // Anything but a text model is refused as such, before its tokenizer is looked up.
  std::shared_ptr<LanguageModel> made = config.is_null() ? nullptr : make();
  TokenizerPlace place = find_tokenizer(settings, folder, environment);
  Tokenizer tokenizer = Tokenizer::load(place.path);
  if (!made) {
    config = scratch(model, tokenizer);
    made = make();
  }
  config = made->config();  // with the class, which may be missing
  std::vector<std::int64_t> eos_ids = eos_ids_of(config, generation, tokenizer, origin);
  const fs::path tokenizer_folder = fs::is_directory(place.path) ? place.path : place.path.parent_path();
  return {std::move(made),
          std::move(config),
          std::move(generation),
          std::move(tokenizer),
          tokenizer_folder,
          std::move(place.files),
          folder,
          std::move(eos_ids)};
}

ParameterSource first_values_of(const OpenedModel& model, std::uint64_t seed) {
  if (model.weights_folder.empty()) return fresh_values_of(*model.model, seed);
  const auto weights = std::make_shared<const Weights>(Weights::open(model.weights_folder));
  const auto source = std::make_shared<const WeightSource>(*model.model, *weights, load_options_of(*model.model));
  return [weights, source](const std::string& name, const at::Tensor& values) { source->fill(name, values); };
}

ParameterSource fresh_values_of(const LanguageModel& model, std::uint64_t seed) {
  return [first = model.initial_values(), seed](const std::string& name, at::Tensor values) {
    initialise_parameter(values, name, first, seed);
  };
}

void declare_text_model(Schema& schema, DeclaredSettings& s) {
  ModelSettings& model = s.train.model;
  shared::model_name_or_path(schema, model, {.environment = {"MODEL_NAME"}});
  schema.text("config_name", &model.config_name, "config.json of a model from scratch");
  shared::tokenizer_name(schema, model);
}

void check_text_model(const Schema& schema, const DeclaredSettings& s, bool needs_data) {
  if (!needs_data) return;
  const ModelSettings& model = s.train.model;
  if (model.name_or_path.empty()) {
    require(model.config_name, "--model_name_or_path FOLDER, or --config_name FILE for a model from scratch,");
    require(model.tokenizer_name, "--tokenizer_name PATH, which a model from scratch needs,");
  } else if (!model.config_name.empty()) {
    throw UsageError(fmt::format("{} and {} exclude each other: the folder has a config.json of its own",
                                 shown(schema, "model_name_or_path"), shown(schema, "config_name")));
  }
}

}  // namespace tessera
