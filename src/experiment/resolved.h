// An experiment with everything decided: what runs, where, with which files. (no torch)
//
// From weakest to strongest: the catalogue's levels and preset, the site file, --scale tiny, the command line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/environment.h"
#include "experiment/catalogue.h"
#include "experiment/values.h"
#include "settings/declared.h"
#include "settings/load.h"

namespace tessera {

enum class Scale { kFull, kTiny };

struct ResolveOptions {
  std::string preset = "guide";
  Scale scale = Scale::kFull;
  Values site_settings, site_environment;  // for the experiment's job
  Values settings;                         // of `tessera train`, from the command line
  Values resources, gate;                  // from the command line
  std::vector<const JobTraits*> jobs;      // all jobs
  Environment environment;                 // in which the run starts: sbatch hands on that of the shell
};

struct ResolvedExperiment {
  std::string name, family, job, about, preset;
  Scale scale = Scale::kFull;
  Study study;
  Values settings, environment, resources, gate;
  std::map<std::string, std::string> files;  // to lie in the run's folder: path -> content
  std::vector<std::string> notes;            // one line each: what a user should know before it runs
  std::string missing;                       // what it needs before it can start, such as data; empty: nothing

  int nodes() const { return resources.count("nodes", 1); }
  int gpus_per_node() const { return resources.count("gpus_per_node", 1); }  // ranks, where they run on CPUs
  int num_ranks() const { return nodes() * gpus_per_node(); }
  bool on_gpus() const { return settings.text("device") != "cpu"; }
  bool has_gate() const { return gate.text("enabled") == "true"; }
  int reserved_gpus_per_node() const;  // at least those used
  void check_can_start() const;        // throws UsageError, naming the experiment and what is missing
  // What follows `tessera`: the bandwidth gate.
  std::vector<std::string> gate_words() const;
  // What follows `tessera train`, to be run in the run's folder.
  std::vector<std::string> train_words() const;
};

// Throws UsageError for whatever `tessera train` would refuse but for data, naming the experiment.
ResolvedExperiment resolve(const ExperimentSpec& spec, const Catalogue& catalogue, const ResolveOptions& options);

// Says in `missing` what `tessera train` would ask for. Data that it would find by itself (DATA_DIR, ./data) becomes a
// setting: the run starts in its own folder, where it would not find them.
void look_for_data(ResolvedExperiment& experiment, const std::vector<const JobTraits*>& jobs,
                   const Environment& environment);

// The run's settings as `tessera train` reads them on these ranks; files are given as texts, data is not looked at.
LoadedTrainSettings loaded_settings(const ResolvedExperiment& experiment, const std::vector<const JobTraits*>& jobs);

}  // namespace tessera
