// What Slurm says about jobs, asked once for all of them. (no torch)
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"

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

// Throws Error with sbatch's own message. `dependency`: "afterany:12:13" or nothing.
std::string submit_job(const std::filesystem::path& script, const std::string& dependency);
void cancel_jobs(const std::vector<std::string>& ids);

// Those of `ids` that squeue, scontrol (which remembers ended jobs for some minutes) or sacct (where there is
// accounting) know. `cache` holds the last answer, so that Slurm is asked at most every 30 s; no cache: always. Throws
// Error where Slurm does not answer.
Jobs ask_about(const std::vector<std::string>& ids, const std::filesystem::path& cache);

// The commands' outputs, as they are asked for here.
Jobs parse_squeue(const std::string& text);    // -h -o '%i|%T|%r|%N'
Jobs parse_scontrol(const std::string& text);  // -o show job
Jobs parse_sacct(const std::string& text);     // -n -X -P -o JobID,State,ExitCode,NodeList

}  // namespace tessera
