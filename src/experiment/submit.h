// Experiments into Slurm's queue: a folder, a script and a job each. (no torch)
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiment/job_script.h"

namespace tessera {

struct SubmitOptions {
  std::filesystem::path runs;
  Site site;
  Program program;
  ScriptOptions script;
  int max_parallel = 0;         // at most so many run at once: each waits for the one that many before it; 0: no limit
  bool baseline_first = false;  // the others wait for their study's baseline, if it is among them
};

struct Submitted {
  std::string experiment, job_id;
  std::filesystem::path folder;
};

// Throws UsageError where a node of the site has too few GPUs.
void check_fits(const ResolvedExperiment& experiment, const Site& site);

// In the order given, baselines first; `tell` hears of each as it is taken. Throws UsageError before anything is queued
// if one of them does not fit or cannot start (ResolvedExperiment::missing). Throws Error with sbatch's message at the
// first that Slurm refuses; its folder is removed, the jobs before it stay.
std::vector<Submitted> submit(std::vector<ResolvedExperiment> experiments, const SubmitOptions& options,
                              const std::function<void(const Submitted&)>& tell);

}  // namespace tessera
