#include "experiment/catalogue.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Below a reference: ds_configs/zero2.json itself is "zero2.json", tiny/tokenizer/x.json of tiny/tokenizer is
// "tokenizer/x.json".
std::string name_below(const std::string& reference, const std::string& path) {
  const std::size_t last = reference.rfind('/');
  return path.substr(last == std::string::npos ? 0 : last + 1);
}

bool is_at_or_below(const std::string& reference, std::string_view path) {
  return path == reference || path.starts_with(reference + "/");
}

// Why a file without our key looks as if it were meant to have it; empty: other JSON, a ds_config, say.
std::string mistake_in(const std::string& text) {
  try {
    const Json root = parse_json(text, "", JsonComments::kAllowed);
    for (const auto& [key, value] : root.items()) {
      if (!nearest(key, {"tessera_experiments"})) continue;
      return fmt::format("it has \"{}\"; did you mean \"tessera_experiments\"?", printable(key, 40));
    }
    const bool has_form = root.contains("family") && root.contains("experiments");
    return has_form ? "\"tessera_experiments\": 1 is missing" : "";
  } catch (const Error&) {  // broken, or a list: whatever it is, nothing says that it is ours
    return "";
  }
}

}  // namespace

bool names_experiment(std::string word, const std::string& name) {
  while (word.ends_with('/')) word.pop_back();
  return word == name || name.starts_with(word + "/") || fnmatch(word.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

Catalogue::Catalogue(const CatalogueOptions& options)
    : folders_(options.folders), presets_{"guide"}, has_builtin_(options.has_builtin) {
  for (const BuiltinFile& file : builtin_files()) {
    const bool declares = file.path.find('/') == std::string_view::npos && file.path.ends_with(".json");
    if (has_builtin_ && declares) read_text(file.content, std::string(file.path), options.preset);
  }
  std::error_code none;
  const auto is_own = [](const fs::path& folder) {
    std::error_code unknown;
    return fs::equivalent(folder, "experiments", unknown);
  };
  if (options.has_own && fs::is_directory("experiments", none) &&
      std::none_of(folders_.begin(), folders_.end(), is_own)) {
    folders_.push_back("experiments");
  }
  for (const fs::path& folder : folders_) read_folder(folder, options.preset);
  if (std::find(presets_.begin(), presets_.end(), options.preset) == presets_.end()) {
    throw UsageError(fmt::format("--preset={}: no experiment has it; presets: {}", printable(options.preset, 40),
                                 join(presets_, ", ")));
  }
}

void Catalogue::read_folder(const fs::path& folder, const std::string& preset) {
  std::error_code reason;
  if (!fs::is_directory(folder, reason)) {
    throw UsageError(fmt::format("--catalogue {}: no such folder", folder.string()));
  }
  std::set<fs::path> paths;  // sorted
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".json") paths.insert(entry.path());
  }
  for (const fs::path& path : paths) {
    const std::string text = read_file(path);
    if (text.find("\"tessera_experiments\"") == std::string::npos) {
      if (const std::string mistake = mistake_in(text); !mistake.empty()) {
        log_warn("{} is skipped: {}", path.string(), mistake);
      }
      continue;
    }
    const std::string base = path.filename().string();
    const auto builtin = std::find_if(builtin_files().begin(), builtin_files().end(),
                                      [&](const BuiltinFile& file) { return file.path == base; });
    if (!has_builtin_ || builtin == builtin_files().end()) {
      read_text(text, path.string(), preset);
    } else if (builtin->content != text) {  // in the repository, where the program is built, it says the same
      log_warn("{} differs from the program's own {} and is skipped: give it another name and family", path.string(),
               base);
    }
  }
}

void Catalogue::read_text(std::string_view text, const std::string& origin, const std::string& preset) {
  CatalogueFile file = read_catalogue_file(text, origin, preset);
  for (const std::string& name : file.presets) add_once(presets_, name);
  for (ExperimentSpec& spec : file.experiments) {
    if (const ExperimentSpec* other = find(spec.name)) {
      throw UsageError(fmt::format("{}: {} is already an experiment of {}; choose another family or name", spec.file,
                                   spec.name, other->file));
    }
    all_.push_back(std::move(spec));
  }
  std::move(file.tables.begin(), file.tables.end(), std::back_inserter(tables_));
  std::move(file.models.begin(), file.models.end(), std::back_inserter(models_));
}

const ExperimentSpec* Catalogue::find(const std::string& name) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const ExperimentSpec& spec) { return spec.name == name; });
  return found == all_.end() ? nullptr : &*found;
}

std::vector<const ExperimentSpec*> Catalogue::select(const std::vector<std::string>& words) const {
  for (const std::string& word : words) {
    if (std::any_of(all_.begin(), all_.end(), [&](const auto& spec) { return names_experiment(word, spec.name); }))
      continue;
    std::vector<std::string> all;
    for (const ExperimentSpec& spec : all_) {
      all.push_back(spec.name);
      add_once(all, spec.folder());
    }
    throw UsageError(fmt::format("'{}' names no experiment{}; `tessera experiment list` shows all {}",
                                 printable(word, 80), did_you_mean(word, all), all_.size()));
  }
  std::vector<const ExperimentSpec*> chosen;
  for (const ExperimentSpec& spec : all_) {
    const bool is_named = std::any_of(words.begin(), words.end(),
                                      [&](const std::string& word) { return names_experiment(word, spec.name); });
    if (is_named) chosen.push_back(&spec);
  }
  return chosen;
}

std::map<std::string, std::string> Catalogue::files(const std::string& path) const {
  std::map<std::string, std::string> found;
  for (const fs::path& folder : folders_) {
    std::error_code none;
    const fs::path at = folder / path;
    if (fs::is_regular_file(at, none)) found.emplace(name_below(path, path), read_file(at));
    if (!fs::is_directory(at, none)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(at)) {
      if (!entry.is_regular_file()) continue;
      const std::string inner = (fs::path(path) / fs::relative(entry.path(), at)).string();
      found.emplace(name_below(path, inner), read_file(entry.path()));
    }
  }
  for (const BuiltinFile& file : builtin_files()) {
    if (is_at_or_below(path, file.path)) {
      found.emplace(name_below(path, std::string(file.path)), std::string(file.content));
    }
  }
  if (found.empty()) throw UsageError(fmt::format("the catalogue has no file or folder '{}'", printable(path, 80)));
  return found;
}

}  // namespace tessera
