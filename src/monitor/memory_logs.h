// Where the memory logs of a job lie below a folder, and what a job is called that has no number.
//
//   gpu_memory/<job>/gpu_memory_log.csv      cpu_memory/<job>/cpu_memory_log.txt cpu_memory/<job>/cgroup_memory_log.txt
//
// With several nodes each has its own files: gpu_memory_log_<host>.csv, cpu_memory_log_<host>.txt, ...
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/environment.h"

namespace tessera {

struct MemoryLogs {
  std::vector<std::filesystem::path> gpu, cpu, cgroup;
};

std::filesystem::path gpu_memory_folder(const std::filesystem::path& folder, const std::string& job);
std::filesystem::path cpu_memory_folder(const std::filesystem::path& folder, const std::string& job);

// This host's files, whether or not they exist. `host` is empty where the job has one node.
MemoryLogs memory_logs_of_host(const std::filesystem::path& folder, const std::string& job, const std::string& host);

// The files that exist, sorted by name: every .csv of the GPU folder, cpu_memory_log*.txt, cgroup_memory_log*.txt.
MemoryLogs find_memory_logs(const std::filesystem::path& folder, const std::string& job);

// SLURM_JOB_ID, else the local time, "20250131-120000", with -2, -3, ... where the folder already has logs of that
// name.
std::string new_memory_job(const std::filesystem::path& folder, const Environment& environment);
// This host's name where Slurm or Open MPI tell of several nodes, for the files' names; else empty.
std::string host_in_log_names(const Environment& environment);
// `job` as a folder's name: no slashes or control characters, not empty, not . or ..
std::string job_as_folder_name(std::string job);

}  // namespace tessera
