#include "experiment/catalogue_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "experiment/values.h"
#include "settings/foreign_config.h"

namespace tessera {
namespace {

const std::vector<std::string>& level_keys() {
  static const std::vector<std::string> keys = {"about", "job",     "settings", "environment", "resources",  "gate",
                                                "study", "presets", "sweep",    "repeats",     "experiments"};
  return keys;
}

const std::map<std::string, StudyKind>& study_kinds() {
  static const std::map<std::string, StudyKind> kinds = {{"none", StudyKind::kNone},
                                                         {"strong", StudyKind::kStrong},
                                                         {"weak_by_data", StudyKind::kWeakByData},
                                                         {"weak_by_layers", StudyKind::kWeakByLayers},
                                                         {"throughput", StudyKind::kThroughput}};
  return kinds;
}

std::string known(const std::string& word, const std::vector<std::string>& names) {
  const auto meant = nearest(word, names);
  return fmt::format("{}; known: {}", meant ? fmt::format(", did you mean '{}'?", *meant) : "", join(names, ", "));
}

class Reader {
 public:
  Reader(const std::string& origin, const std::string& preset) : origin_(origin), preset_(preset) {}

  std::vector<ExperimentSpec> read(Json root) {
    check_version(root);
    const std::string family = take_family(root);
    for (const char* key : {"tables", "table_notes", "models"}) root.erase(key);  // table_spec.h
    ExperimentSpec top;
    top.name = top.family = family;
    top.file = origin_;
    walk_level(root, top, "");
    if (all_.empty()) refuse_file(origin_, "it declares no experiment: \"experiments\" is missing or empty");
    return std::move(all_);
  }

 private:
  [[noreturn]] void refuse(const std::string& path, const std::string& mistake) const {
    throw UsageError(fmt::format("{}: {}{}", origin_, path.empty() ? "" : path + ": ", mistake));
  }

  void check_version(Json& root) const {
    const auto version = root.find("tessera_experiments");
    if (version == root.end()) refuse("", "no file of experiments: \"tessera_experiments\": 1 is missing");
    if (!version->is_number_integer() || version->get<long long>() != kCatalogueFormat) {
      refuse("", fmt::format("\"tessera_experiments\": {}: this program reads version {}", version->dump(),
                             kCatalogueFormat));
    }
    root.erase("tessera_experiments");
  }

  std::string take_family(Json& root) const {
    const auto family = root.find("family");
    if (family == root.end() || !family->is_string()) refuse("", "\"family\" is missing: the names' first part");
    std::string name = family->get<std::string>();
    for (const std::string& part : split(name, '/')) check_name_part("family", part);
    root.erase("family");
    return name;
  }

  // Names become folders and words of job scripts.
  void check_name_part(const std::string& path, const std::string& part) const {
    const bool is_plain = !part.empty() && part.find_first_not_of(
                                               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                               "0123456789_-.+=,") == std::string::npos;
    if (!is_plain || part.starts_with('.') || part.starts_with('-')) {
      refuse(path, fmt::format("'{}': names are made of letters, digits and _-.+=, and begin with a letter or digit",
                               printable(part, 60)));
    }
  }

  const Json& section(const Json& level, const std::string& key, const std::string& path) const {
    const Json& value = level.at(key);
    if (!value.is_object()) refuse(path, fmt::format("\"{}\": expected an object: {{ ... }}", key));
    return value;
  }

  std::string text_at(const Json& level, const std::string& key, const std::string& path) const {
    const Json& value = level.at(key);
    if (!value.is_string()) refuse(path, fmt::format("\"{}\": expected a text", key));
    return value.get<std::string>();
  }

  // `allowed` empty: any name (settings are checked by `tessera train`'s own declarations when they are resolved).
  void overlay_values(const Json& level, const std::string& key, const std::vector<std::string>& allowed,
                      const std::string& path, const std::string& from, Values& values) const {
    if (!level.contains(key)) return;
    for (const auto& [name, value] : section(level, key, path).items()) {
      if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
        refuse(path, fmt::format("\"{}\": unknown name '{}'{}", key, printable(name, 40), known(name, allowed)));
      }
      if (value.is_null()) {
        values.unset(name);
        continue;
      }
      values.set(name, value_text(value), from);
    }
  }

  static std::string value_text(const Json& value) {
    if (!value.is_array()) return text_of(value);
    std::vector<std::string> words;
    for (const Json& word : value) words.push_back(text_of(word));
    return join(words, ",");
  }

  void overlay(const Json& level, const std::string& path, const std::string& from, ExperimentSpec& spec) const {
    if (level.contains("job")) spec.job = text_at(level, "job", path);
    if (level.contains("about")) spec.about = text_at(level, "about", path);
    overlay_values(level, "settings", {}, path, from, spec.settings);
    overlay_values(level, "environment", {}, path, from, spec.environment);
    overlay_values(level, "resources", resource_names(), path, from, spec.resources);
    overlay_values(level, "gate", gate_names(), path, from, spec.gate);
    if (level.contains("study")) overlay_study(section(level, "study", path), path, spec);
  }

  void overlay_study(const Json& study, const std::string& path, ExperimentSpec& spec) const {
    for (const auto& [name, value] : study.items()) {
      const std::string word = text_at(study, name, path);
      if (name == "baseline") {
        spec.study.baseline = word.empty() ? "" : spec.family + "/" + word;
      } else if (name == "kind") {
        const auto kind = study_kinds().find(word);
        std::vector<std::string> kinds;
        for (const auto& [each, ignored] : study_kinds()) kinds.push_back(each);
        if (kind == study_kinds().end()) {
          refuse(path, fmt::format("\"study\": unknown kind '{}'{}", printable(word, 40), known(word, kinds)));
        }
        spec.study.kind = kind->second;
      } else {
        refuse(path, fmt::format("\"study\": unknown name '{}'; known: kind, baseline", printable(name, 40)));
      }
    }
  }

  void check_keys(const Json& level, const std::vector<std::string>& allowed, const std::string& path) const {
    for (const auto& [key, value] : level.items()) {
      if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
        refuse(path, fmt::format("unknown key \"{}\"{}", printable(key, 40), known(key, allowed)));
      }
    }
  }

  void walk_level(const Json& level, ExperimentSpec spec, const std::string& path) {
    if (!level.is_object()) refuse(path, "expected an object: { ... }");
    check_keys(level, level_keys(), path);
    const std::string place = path.empty() ? origin_ : fmt::format("{}: {}", origin_, path);
    overlay(level, path, place, spec);
    overlay_preset(level, path, place, spec);
    if (!level.contains("experiments")) return add(level, spec, path);
    for (const char* key : {"sweep", "repeats"}) {
      if (level.contains(key)) refuse(path, fmt::format("\"{}\" belongs to an experiment, not to a group", key));
    }
    for (const auto& [name, inner] : section(level, "experiments", path).items()) {
      check_name_part(path, name);
      ExperimentSpec child = spec;
      child.name += "/" + name;
      child.about.clear();  // says what this level is
      walk_level(inner, std::move(child), path.empty() ? name : path + "/" + name);
    }
  }

  void overlay_preset(const Json& level, const std::string& path, const std::string& place, ExperimentSpec& spec) {
    if (!level.contains("presets")) return;
    for (const auto& [name, changes] : section(level, "presets", path).items()) {
      if (!changes.is_object()) refuse(path, fmt::format("preset {}: expected an object: {{ ... }}", name));
      check_keys(changes, {"job", "settings", "environment", "resources", "gate"}, path + ": preset " + name);
      ExperimentSpec unused = spec;  // checked even where another preset is asked for
      overlay(changes, path, fmt::format("{}, preset {}", place, name), name == preset_ ? spec : unused);
    }
  }

  void add(const Json& level, const ExperimentSpec& spec, const std::string& path) {
    if (spec.job.empty()) refuse(path, "\"job\" is missing: one of those of `tessera train`");
    std::vector<ExperimentSpec> made = {spec};
    if (level.contains("sweep")) made = swept(section(level, "sweep", path), spec, path);
    if (level.contains("repeats")) made = repeated(level.at("repeats"), made, path);
    for (ExperimentSpec& each : made) {
      complete(each.resources, each.name);
      const bool is_known =
          std::any_of(all_.begin(), all_.end(), [&](const auto& other) { return other.name == each.name; });
      if (is_known) refuse(path, fmt::format("two experiments are called {}", each.name));
      all_.push_back(std::move(each));
    }
  }

  static void complete(Values& resources, const std::string& name) {
    const std::initializer_list<std::pair<const char*, std::string>> presets = {
        {"job_name", name.substr(name.rfind('/') + 1)},
        {"nodes", "1"},
        {"gpus_per_node", "1"},
        {"cpus_per_task", "4"},
        {"log", "log/%x-%j.out"}};
    for (const auto& [resource, text] : presets) {
      if (!resources.has(resource)) resources.set(resource, text, "default");
    }
  }

  // One experiment per combination, named after its values: .../learning_rate=1e-05,bf16=true
  std::vector<ExperimentSpec> swept(const Json& sweep, const ExperimentSpec& spec, const std::string& path) const {
    std::vector<ExperimentSpec> made = {spec};
    std::string separator = "/";
    for (const auto& [setting, values] : sweep.items()) {
      if (!values.is_array() || values.empty())
        refuse(path, fmt::format("sweep of {}: expected [value, ...]", setting));
      std::vector<ExperimentSpec> next;
      for (const ExperimentSpec& one : made) {
        for (const Json& value : values) {
          ExperimentSpec each = one;
          each.settings.set(setting, value_text(value), fmt::format("{}: {}: sweep", origin_, path));
          const std::string part = fmt::format("{}={}", setting, value_text(value));
          check_name_part(path + ": sweep", part);
          each.name += separator + part;
          next.push_back(std::move(each));
        }
      }
      made = std::move(next);
      separator = ",";
    }
    return made;
  }

  std::vector<ExperimentSpec> repeated(const Json& repeats, const std::vector<ExperimentSpec>& specs,
                                       const std::string& path) const {
    const long long count = repeats.is_number_integer() ? repeats.get<long long>() : 0;
    if (count < 1 || count > 1000) refuse(path, "\"repeats\": expected a whole number from 1 to 1000");
    std::vector<ExperimentSpec> made;
    for (const ExperimentSpec& spec : specs) {
      for (int repeat = 1; repeat <= count; ++repeat) {
        ExperimentSpec each = spec;
        each.name += fmt::format("/repeat_{}", repeat);
        each.repeat = repeat;
        made.push_back(std::move(each));
      }
    }
    return made;
  }

  std::string origin_, preset_;
  std::vector<ExperimentSpec> all_;
};

void collect_presets(const Json& level, std::vector<std::string>& names) {
  if (!level.is_object()) return;
  if (const auto presets = level.find("presets"); presets != level.end() && presets->is_object()) {
    for (const auto& [name, changes] : presets->items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  if (const auto inner = level.find("experiments"); inner != level.end() && inner->is_object()) {
    for (const auto& [name, each] : inner->items()) collect_presets(each, names);
  }
}

}  // namespace

const std::vector<std::string>& resource_names() {
  static const std::vector<std::string> names = {"job_name",      "nodes",  "gpus_per_node", "reserved_gpus_per_node",
                                                 "cpus_per_task", "memory", "time",          "log"};
  return names;
}

const std::vector<std::string>& gate_names() {
  static const std::vector<std::string> names = {"enabled", "min_busbw", "size", "iterations", "warmup_iterations"};
  return names;
}

std::vector<ExperimentSpec> read_catalogue_file(std::string_view text, const std::string& origin,
                                                const std::string& preset) {
  return Reader(origin, preset).read(parse_commented_object(text, origin));
}

std::vector<std::string> presets_of(std::string_view text, const std::string& origin) {
  std::vector<std::string> names = {"guide"};
  collect_presets(parse_commented_object(text, origin), names);
  return names;
}

}  // namespace tessera
