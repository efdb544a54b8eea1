#include "experiment/catalogue_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "settings/foreign_config.h"

namespace tessera {
namespace {

StudyKind study_kind(const JsonReader& value) {
  static const std::map<std::string, StudyKind> kinds = {{"none", StudyKind::kNone},
                                                         {"strong", StudyKind::kStrong},
                                                         {"weak_by_data", StudyKind::kWeakByData},
                                                         {"weak_by_layers", StudyKind::kWeakByLayers},
                                                         {"throughput", StudyKind::kThroughput}};
  const auto kind = kinds.find(value.as_text());
  if (kind != kinds.end()) return kind->second;
  std::vector<std::string> known;
  for (const auto& [name, each] : kinds) known.push_back(name);
  value.refuse_value("a kind of study: " + join(known, ", "));
}

// Names become folders and words of job scripts.
void check_name_part(const JsonReader& at, const std::string& part) {
  const bool is_plain = !part.empty() && part.find_first_not_of(
                                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789_-.+=,") == std::string::npos;
  if (is_plain && !part.starts_with('.') && !part.starts_with('-')) return;
  at.refuse(fmt::format("'{}': names are made of letters, digits and _-.+=, and begin with a letter or digit",
                        printable(part, 60)));
}

std::string value_text(const JsonReader& value) {
  if (!value.is_array()) return text_of(value);
  std::vector<std::string> words;
  for (const JsonReader& word : value.items()) words.push_back(text_of(word));
  return join(words, ",");
}

class ExperimentReader {
 public:
  ExperimentReader(CatalogueFile& made, const std::string& preset) : made_(made), preset_(preset) {}

  void read(const JsonReader& file) {
    ExperimentSpec top;
    top.name = top.family = file.text("family");
    top.file = file.source().origin;
    for (const std::string& part : split(top.family, '/')) check_name_part(file.at("family"), part);
    walk_level(file, top, "");
    if (made_.experiments.empty()) {
      refuse_file(top.file, "it declares no experiment: \"experiments\" is missing or empty");
    }
  }

 private:
  // Names of settings are free: `tessera train`'s own declarations check them when they are resolved.
  static void overlay_values(const JsonReader& level, const char* key, const std::string& from, Values& values) {
    const auto section = level.find(key);
    if (!section) return;
    for (const auto& [name, value] : section->members()) {
      value.is_null() ? values.unset(name) : values.set(name, value_text(value), from);
    }
  }

  static void overlay(const JsonReader& level, const std::string& from, ExperimentSpec& spec) {
    spec.job = level.text("job", spec.job);
    spec.about = level.text("about", spec.about);
    for (const auto& [key, values] : kValueSections) overlay_values(level, key, from, spec.*values);
    if (const auto resources = level.find("resources")) resources->allow_only(resource_names());
    if (const auto gate = level.find("gate")) {
      gate->allow_only({"enabled", "min_busbw", "size", "iterations", "warmup_iterations"});
    }
    const auto study = level.find("study");
    if (!study) return;
    study->allow_only({"kind", "baseline"});
    if (const auto kind = study->find("kind")) spec.study.kind = study_kind(*kind);
    if (const auto baseline = study->find("baseline")) {
      const std::string name = baseline->as_text();
      spec.study.baseline = name.empty() ? "" : spec.family + "/" + name;
    }
  }

  void walk_level(const JsonReader& level, ExperimentSpec spec, const std::string& path) {
    std::vector<std::string> keys = {"about", "job",     "settings", "environment", "resources",  "gate",
                                     "study", "presets", "sweep",    "repeats",     "experiments"};
    if (path.empty()) {
      keys.insert(keys.end(), {"tessera_experiments", "family", "tables", "table_notes", "models"});  // table_spec.h
    }
    level.allow_only(keys);
    for (const auto& [key, value] : level.members()) {
      if (value.is_null()) value.refuse_value("a value");  // null takes away a setting, never a section
    }
    const std::string place = path.empty() ? spec.file : fmt::format("{}: {}", spec.file, path);
    overlay(level, place, spec);
    overlay_preset(level, place, spec);
    const auto experiments = level.find("experiments");
    if (!experiments) return add(level, spec, place);
    for (const char* key : {"sweep", "repeats"}) {
      if (const auto found = level.find(key)) found->refuse_key("this belongs to an experiment, not to a group");
    }
    for (const auto& [name, inner] : experiments->members()) {
      check_name_part(inner, name);
      ExperimentSpec child = spec;
      child.name += "/" + name;
      child.about.clear();  // says what this level is
      walk_level(inner, std::move(child), path.empty() ? name : path + "/" + name);
    }
  }

  void overlay_preset(const JsonReader& level, const std::string& place, ExperimentSpec& spec) {
    const auto presets = level.find("presets");
    if (!presets) return;
    for (const auto& [name, changes] : presets->members()) {
      add_once(made_.presets, name);
      changes.allow_only({"job", "settings", "environment", "resources", "gate"});
      ExperimentSpec unused = spec;  // checked even where another preset is asked for
      overlay(changes, fmt::format("{}, preset {}", place, name), name == preset_ ? spec : unused);
    }
  }

  void add(const JsonReader& level, const ExperimentSpec& spec, const std::string& place) {
    if (spec.job.empty()) level.refuse("\"job\" is missing: one of those of `tessera train`");
    for (ExperimentSpec& each : repeated(level, swept(level, spec, place))) {
      each.resources.complete({{"job_name", each.name.substr(each.name.rfind('/') + 1)},
                               {"nodes", "1"},
                               {"gpus_per_node", "1"},
                               {"cpus_per_task", "4"},
                               {"log", "log/%x-%j.out"}});
      const bool is_known = std::any_of(made_.experiments.begin(), made_.experiments.end(),
                                        [&](const ExperimentSpec& other) { return other.name == each.name; });
      if (is_known) level.refuse(fmt::format("two experiments are called {}", each.name));
      made_.experiments.push_back(std::move(each));
    }
  }

  // One experiment per combination, named after its values: .../learning_rate=1e-05,bf16=true
  static std::vector<ExperimentSpec> swept(const JsonReader& level, const ExperimentSpec& spec,
                                           const std::string& place) {
    std::vector<ExperimentSpec> made = {spec};
    const auto sweep = level.find("sweep");
    if (!sweep) return made;
    std::string separator = "/";
    for (const auto& [setting, values] : sweep->members()) {
      if (!values.is_array() || values.size() == 0) values.refuse_value("[value, ...]");
      std::vector<ExperimentSpec> next;
      for (const ExperimentSpec& one : made) {
        for (const JsonReader& value : values.items()) {
          ExperimentSpec each = one;
          each.settings.set(setting, value_text(value), place + ": sweep");
          const std::string part = fmt::format("{}={}", setting, value_text(value));
          check_name_part(value, part);
          each.name += separator + part;
          next.push_back(std::move(each));
        }
      }
      made = std::move(next);
      separator = ",";
    }
    return made;
  }

  static std::vector<ExperimentSpec> repeated(const JsonReader& level, std::vector<ExperimentSpec> specs) {
    if (!level.has("repeats")) return specs;
    const auto count = static_cast<int>(level.integer("repeats", 1, 1000));
    std::vector<ExperimentSpec> made;
    for (const ExperimentSpec& spec : specs) {
      for (int repeat = 1; repeat <= count; ++repeat) {
        ExperimentSpec& each = made.emplace_back(spec);
        each.name += fmt::format("/repeat_{}", repeat);
        each.repeat = repeat;
      }
    }
    return made;
  }

  CatalogueFile& made_;
  const std::string& preset_;
};

}  // namespace

const std::vector<std::string>& resource_names() {
  static const std::vector<std::string> names = {"job_name",      "nodes",  "gpus_per_node", "reserved_gpus_per_node",
                                                 "cpus_per_task", "memory", "time",          "log"};
  return names;
}

CatalogueFile read_catalogue_file(std::string_view text, const std::string& origin, const std::string& preset) {
  const JsonText json(std::string(text), origin, JsonComments::kAllowed);
  const JsonReader file = json.root();
  const auto version = file.find("tessera_experiments");
  if (!version) refuse_file(origin, "no file of experiments: \"tessera_experiments\": 1 is missing");
  if (version->json() != kCatalogueFormat) {
    version->refuse(fmt::format("this program reads version {}, found {}", kCatalogueFormat, shown(version->json())));
  }
  CatalogueFile made;
  ExperimentReader(made, preset).read(file);
  made.tables = read_tables(file);
  made.models = read_models(file);
  return made;
}

}  // namespace tessera
