// `tessera import`: a user's job script as an experiment of the catalogue. Nothing is executed. (no torch)
//
//   Import imported = import_script({.path = "job.sbatch", .jobs = job_traits(), ...});   // throws UsageError
//   write imported.text to the experiment file, imported.files into the folder beside it
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/environment.h"
#include "experiment/import/remarks.h"
#include "experiment/resolved.h"
#include "settings/declared.h"

namespace tessera {

struct ImportRequest {
  std::filesystem::path path;          // a script, or a folder with one
  std::filesystem::path output;        // empty: experiments/NAME.json
  std::string name;                    // FAMILY/NAME; empty: imported/JOB_NAME
  std::string job;                     // empty: guessed
  int launch = 0;                      // which of several training lines, from 1; 0: there must be one
  std::vector<const JobTraits*> jobs;  // all
  Environment environment;
};

struct Import {
  std::string script;                        // its file name
  std::string name, job_reason;              // of the experiment
  std::filesystem::path output;              // where the experiment file belongs
  std::string text;                          // of the experiment file
  std::map<std::string, std::string> files;  // beside it: "NAME/ds.json" -> content
  ResolvedExperiment resolved;               // as `tessera experiment` would run it
  std::string command;                       // the run without the catalogue: exports and one command
  std::vector<Remark> remarks;
};

// The experiment resolves: whatever `tessera train` would refuse is thrown as a UsageError.
Import import_script(const ImportRequest& request);

// What was understood and what was not, by kind; then what `tessera train` says about the experiment, and the command.
std::string import_report(const Import& imported);

}  // namespace tessera
