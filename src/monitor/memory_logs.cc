#include "monitor/memory_logs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <system_error>

#include "core/host.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_like(const fs::path& folder, const std::string& begin, const std::string& end) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), last; !error && entry != last; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with(begin) && name.ends_with(end) && !entry->is_directory(ignored)) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

fs::path gpu_memory_folder(const fs::path& folder, const std::string& job) {
  return folder / "gpu_memory" / job;
}

fs::path cpu_memory_folder(const fs::path& folder, const std::string& job) {
  return folder / "cpu_memory" / job;
}

MemoryLogs memory_logs_of_host(const fs::path& folder, const std::string& job, const std::string& host) {
  const std::string end = host.empty() ? "" : "_" + host;
  const fs::path cpu = cpu_memory_folder(folder, job);
  return {{gpu_memory_folder(folder, job) / fmt::format("gpu_memory_log{}.csv", end)},
          {cpu / fmt::format("cpu_memory_log{}.txt", end)},
          {cpu / fmt::format("cgroup_memory_log{}.txt", end)}};
}

MemoryLogs find_memory_logs(const fs::path& folder, const std::string& job) {
  const fs::path cpu = cpu_memory_folder(folder, job);
  return {files_like(gpu_memory_folder(folder, job), "", ".csv"), files_like(cpu, "cpu_memory_log", ".txt"),
          files_like(cpu, "cgroup_memory_log", ".txt")};
}

std::string new_memory_job(const fs::path& folder, const Environment& environment) {
  if (const auto slurm = environment.find("SLURM_JOB_ID")) return job_as_folder_name(*slurm);
  const std::string now = fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
  std::string job = now;
  std::error_code ignored;
  for (int number = 2; fs::exists(cpu_memory_folder(folder, job), ignored); ++number) {
    job = fmt::format("{}-{}", now, number);
  }
  return job;
}

std::string job_as_folder_name(std::string job) {
  const auto is_unfit = [](unsigned char letter) { return letter == '/' || letter < ' ' || letter == 0x7f; };
  std::replace_if(job.begin(), job.end(), is_unfit, '_');
  return job.empty() || job == "." || job == ".." ? "_" : job;
}

std::string host_in_log_names(const Environment& environment) {
  for (const char* name : {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"}) {
    if (const auto count = environment.find(name)) return *count == "1" ? "" : host_name();
  }
  const auto world = environment.find("OMPI_COMM_WORLD_SIZE"), local = environment.find("OMPI_COMM_WORLD_LOCAL_SIZE");
  return world && local && *world != *local ? host_name() : "";
}

}  // namespace tessera
