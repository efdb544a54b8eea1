// Where each run of the experiments stands: from its own files first, then from Slurm. (no torch)
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiment/queue.h"
#include "experiment/run_folder.h"

namespace tessera {

enum class RunStage { kWaiting, kRunning, kFinished, kFailed };

struct RunStanding {
  StoredRun run;
  RunStage stage = RunStage::kWaiting;
  std::string words;   // "running on node[1-2]", "bandwidth gate: below the threshold (46)", "node failure"
  std::string advice;  // what to do about a failure; empty: nothing to say
};

RunStanding standing_of(const StoredRun& run, const Jobs& jobs);

// Of the newest run of each experiment, unless `all`. Asks Slurm once for all jobs that have not ended by their own
// files. What Slurm says about an ended job is kept in the run's folder, since Slurm forgets it.
std::vector<RunStanding> standings_of(const std::filesystem::path& runs, const std::vector<StoredRun>& stored);

// What Slurm said is kept for half a minute, so that watching a folder costs it nothing; not after this.
void forget_answer(const std::filesystem::path& runs);

// Each user's last of each experiment.
std::vector<StoredRun> newest_of(const std::vector<StoredRun>& stored);

}  // namespace tessera
