// What `tessera experiment VERB NAME... [options] [settings]` was told, and the experiments that follow from it.
//
// Names come first. An option that is not one of the command's own is a setting of `tessera train`, for every
// experiment that is named: `tessera experiment run ddp --num_train_epochs 1`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/schema.h"
#include "experiment/catalogue.h"
#include "experiment/resolved.h"
#include "experiment/run_folder.h"

namespace tessera {

struct ExperimentCommand {
  std::vector<std::string> words;  // the verb, then names
  std::string preset, scale, catalogue, runs, site, format, output;
  Values resources, gate, settings;  // from the command line
  bool as_json = false, keep_going = false, dry_run = false;

  std::string verb() const { return words.empty() ? "" : words.front(); }
  std::vector<std::string> names() const { return {words.begin() + (words.empty() ? 0 : 1), words.end()}; }
};

// Returns false when help was asked for and has been printed.
bool read_experiment_command(const std::vector<std::string>& args, ExperimentCommand& command);

Catalogue catalogue_of(const ExperimentCommand& command);
// Those that the command names, resolved. Throws UsageError, also if it names none.
std::vector<ResolvedExperiment> resolved_of(const ExperimentCommand& command, const Catalogue& catalogue);
Program this_program();

// One per verb, in a file of its own.
int list_experiments(const ExperimentCommand& command);
int show_experiments(const ExperimentCommand& command);
int run_experiments(const ExperimentCommand& command);

}  // namespace tessera
