// Every experiment that can be named: the program's own, and those of users' files. (no torch)
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/catalogue_file.h"
#include "experiment/table_spec.h"

namespace tessera {

struct CatalogueOptions {
  std::string preset = "guide";
  // Of --catalogue.
  std::vector<std::filesystem::path> folders = {};
  bool has_builtin = true;
  bool has_own = true;  // ./experiments is read without being named, if it exists
};

// Whether a user's word names it: its own name, a folder above it, or a pattern with * and ?, where * also stands for
// '/'.
bool names_experiment(std::string word, const std::string& name);

class Catalogue {
 public:
  // Reads every *.json of the folders and of ./experiments that declares experiments. Throws UsageError for a file that
  // is broken, a name that two files declare, and a preset that none of them has.
  explicit Catalogue(const CatalogueOptions& options);

  const std::vector<ExperimentSpec>& all() const { return all_; }
  const std::vector<TableSpec>& tables() const { return tables_; }
  const std::vector<ModelSize>& models() const { return models_; }
  const ExperimentSpec* find(const std::string& name) const;  // null: there is none
  // What a user's words name, in the catalogue's order, each once. Throws UsageError for a word that names nothing.
  std::vector<const ExperimentSpec*> select(const std::vector<std::string>& words) const;

  // A file that an experiment names as 'catalogue:PATH', or all files below that folder: path within the reference's
  // last part -> content. Users' own folders come before the program's. Throws UsageError if there is none.
  std::map<std::string, std::string> files(const std::string& path) const;

 private:
  void read_folder(const std::filesystem::path& folder, const std::string& preset);
  void read_text(std::string_view text, const std::string& origin, const std::string& preset);

  std::vector<ExperimentSpec> all_;
  std::vector<TableSpec> tables_;
  std::vector<ModelSize> models_;
  std::vector<std::filesystem::path> folders_;
  std::vector<std::string> presets_;
  bool has_builtin_;
};

// The repository's experiments/ folder, embedded by the build: nothing has to be installed or found.
struct BuiltinFile {
  std::string_view path;  // within experiments/: "ddp.json", "ds_configs/zero2.json"
  std::string_view content;
};

const std::vector<BuiltinFile>& builtin_files();

}  // namespace tessera
