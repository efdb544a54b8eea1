// Slurm's queue: experiments are submitted to it, and it is asked about all of their jobs at once. (no torch)
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "experiment/scripts.h"

namespace tessera {

struct QueuedJob {
  std::string state;   // Slurm's word: PENDING, RUNNING, COMPLETED, TIMEOUT, NODE_FAIL, CANCELLED, OUT_OF_MEMORY, ...
  std::string reason;  // why it waits: Priority, Resources, Dependency; or the nodes that it has
  std::optional<int> exit_status;
};

using Jobs = std::map<std::string, QueuedJob>;  // by id

Json job_json(const QueuedJob& job);
std::optional<QueuedJob> job_of(const Json& json);  // none: it is no such job

bool is_over(const std::string& state);  // it will not run again

void cancel_jobs(const std::vector<std::string>& ids);

// Those of `ids` that squeue, scontrol (which remembers ended jobs for some minutes) or sacct (where there is
// accounting) know. `cache` holds the last answer, so that Slurm is asked at most every 30 s; no cache: always. Throws
// Error where Slurm does not answer.
Jobs ask_about(const std::vector<std::string>& ids, const std::filesystem::path& cache);

// The commands' outputs, as they are asked for here.
Jobs parse_squeue(const std::string& text);    // -h -o '%i|%T|%r|%N'
Jobs parse_scontrol(const std::string& text);  // -o show job
Jobs parse_sacct(const std::string& text);     // -n -X -P -o JobID,State,ExitCode,NodeList

struct SubmitOptions {
  std::filesystem::path runs;
  Site site;
  Program program;
  bool syncs_wandb = false;     // `wandb sync` at the end of each
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
