// The folder of one run of an experiment: what was asked, what it needs, and what it leaves. (no torch)
//
//   runs/deepspeed/multi_gpu/2_gpus/001/
//     experiment.json   what was asked, resolved: settings and resources with origins, program, commit, user, time
//     zero2.json ...    files that the settings name
//     job.sh            the Slurm script, where it was submitted
//     submitted.json    the job's id, once sbatch has taken it
//     log/              what the run printed: JOB_NAME-JOB_ID.out
//     output/           the run's own folder: run.json, report.html, gpu_memory/, cpu_memory/, ...
//     exit_status       written by the script at its end
//
// The next free number is taken by mkdir, so that two users, or two commands at once, never share a folder. Runs start
// within their folder, and all paths in it are relative to it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "experiment/resolved.h"

namespace tessera {

struct Program {
  std::string path;  // of the tessera that runs it
  std::string version, commit;

  std::string version_line() const;  // the first line of `tessera --version`
};

// Writes experiment.json and the files. Throws Error with the path and the system's reason.
std::filesystem::path make_run_folder(const std::filesystem::path& runs, const ResolvedExperiment& experiment,
                                      const Program& program);

// What experiment.json holds, as `show --json` prints it.
Json experiment_json(const ResolvedExperiment& experiment, const Program& program);

std::string current_user();

struct StoredRun {
  std::filesystem::path folder;
  std::string experiment;             // its name
  int number = 0;                     // 1 for .../001
  Json asked;                         // experiment.json
  std::optional<std::string> job_id;  // of Slurm; none: not submitted
  std::optional<int> exit_status;     // none: has not ended, or was killed before it could say
  std::string user;
};

// The experiment as it was asked for then, with its files. Throws UsageError if they are incomplete.
ResolvedExperiment read_resolved_experiment(const StoredRun& run);

// Those in these folders (RunPlaces::experiment_folders), sorted by name and number; folders that cannot be read are
// reported in `problems`.
std::vector<StoredRun> read_stored_runs(const std::vector<std::filesystem::path>& folders,
                                        std::vector<std::string>& problems);

std::filesystem::path output_of(const StoredRun& run);  // its run.json lies there

// Copies what can be taken home (records, logs and scripts, without weights) of each run to TARGET/EXPERIMENT/NNN.
// Files of a run that goes on are copied as they are. Throws Error with path and reason.
void collect(const std::vector<StoredRun>& runs, const std::filesystem::path& target);

}  // namespace tessera
