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
#include "experiment/site.h"

namespace tessera {

struct ExperimentCommand {
  std::vector<std::string> words;  // the verb, then names
  std::string preset, scale, catalogue, runs, user, site, format, output;
  Values resources, gate, settings;  // from the command line
  int max_parallel = 0;
  bool as_json = false, keep_going = false, dry_run = false, baseline_first = false, wandb_sync = false;
  bool failed = false, all = false;
  bool chooses_variant = false;  // --preset or --scale was given

  std::string verb() const { return words.empty() ? "" : words.front(); }
  std::vector<std::string> names() const { return {words.begin() + (words.empty() ? 0 : 1), words.end()}; }
};

// `folders`: of --catalogue.
Catalogue open_catalogue(const std::string& folders, const std::string& preset = CatalogueOptions().preset);
Catalogue catalogue_of(const ExperimentCommand& command);
// Those that the command names, resolved. Throws UsageError, also if it names none.
std::vector<ResolvedExperiment> resolved_of(const ExperimentCommand& command, const Catalogue& catalogue);
Program this_program();
Site site_of(const ExperimentCommand& command);

// What one walk through the runs' folder finds.
struct RunsFolder {
  std::vector<std::filesystem::path> records;  // run.json files, also of runs that no experiment started
  std::vector<StoredRun> stored;               // runs of experiments, sorted
};
// Problems are logged. Empty where there is no such folder.
RunsFolder read_runs_folder(const std::filesystem::path& runs);

// Those of these names, all of them if there are none, of the user that the command names; sorted.
std::vector<StoredRun> chosen_of(const ExperimentCommand& command, const RunsFolder& folder,
                                 const std::vector<std::string>& names);
// The same for the command's own names and folder.
std::vector<StoredRun> stored_of(const ExperimentCommand& command);

// One per verb: in experiment_start.cc up to rerun, and site; the others in experiment_results.cc.
int list_experiments(const ExperimentCommand& command);
int show_experiments(const ExperimentCommand& command);
int run_experiments(const ExperimentCommand& command);
int submit_experiments(const ExperimentCommand& command);
int rerun_experiments(const ExperimentCommand& command);
int status_of_experiments(const ExperimentCommand& command);
int cancel_experiments(const ExperimentCommand& command);
int table_of_experiments(const ExperimentCommand& command);
int report_experiments(const ExperimentCommand& command);
int collect_experiments(const ExperimentCommand& command);
int write_site(const ExperimentCommand& command);

}  // namespace tessera
