// The memory logs of a job: where they lie below a folder, and the files that nvidia-smi and psrecord write.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/environment.h"

namespace tessera {

// Where the memory logs of a job lie below a folder.
//
//   gpu_memory/<job>/gpu_memory_log.csv      cpu_memory/<job>/cpu_memory_log.txt cpu_memory/<job>/cgroup_memory_log.txt
//
// With several nodes each has its own files: gpu_memory_log_<host>.csv, cpu_memory_log_<host>.txt, ...
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

template <typename Sample>
struct MemoryLog {
  std::vector<Sample> samples;
  int num_unreadable = 0;  // lines that are no sample, except a cut-off last one
};

// The CPU memory log: the file that `psrecord --include-children --interval 5 --log FILE` writes.
//
//   # Elapsed time   CPU (%)     Real (MB)   Virtual (MB)
//          0.000        0.000      123.457     2345.678
//
// MB are 2^20 bytes; CPU is 100 for one busy core; sums over all processes. The reader also takes psrecord's
// --include-io (four columns more) and --log-format csv, a header per start, and a last line that was cut off.
//
// The cgroup memory log has the same form with two columns, 'Elapsed time' and 'Used (MB)': what the job's cgroup holds
// without page cache. There pages that several processes share count once, which a sum over processes counts for each.
struct CpuMemorySample {
  double elapsed_seconds = 0, cpu_percent = 0, real_MB = 0, virtual_MB = 0;
};
using CpuMemoryLog = MemoryLog<CpuMemorySample>;

struct CgroupMemorySample {
  double elapsed_seconds = 0, used_MB = 0;
};
using CgroupMemoryLog = MemoryLog<CgroupMemorySample>;

// psrecord centres the words in twelve columns and writes '# ' before the first.
inline constexpr const char* kCpuMemoryLogHeader = "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)";
inline constexpr const char* kCgroupMemoryLogHeader = "# Elapsed time  Used (MB)  ";
// Each a line with its end.
std::string cpu_memory_log_row(const CpuMemorySample& sample);
std::string cgroup_memory_log_row(const CgroupMemorySample& sample);

// Whether a file that begins like this is meant to be such a log.
bool is_cpu_memory_log(std::string_view text);
bool is_cgroup_memory_log(std::string_view text);
// Throw UsageError if the file is none, with its first line and what was expected.
CpuMemoryLog parse_cpu_memory_log(std::string_view text, const std::string& origin);
CpuMemoryLog read_cpu_memory_log(const std::filesystem::path& path);
CgroupMemoryLog parse_cgroup_memory_log(std::string_view text, const std::string& origin);
CgroupMemoryLog read_cgroup_memory_log(const std::filesystem::path& path);

// The GPU memory log: the file that `nvidia-smi --query-gpu=timestamp,index,name,memory.used,memory.total
// --format=csv,nounits -l 5` writes.
//
//   timestamp, index, name, memory.used [MiB], memory.total [MiB]
//   2025/01/31 12:00:00.123, 0, NVIDIA A100-SXM4-80GB, 26532, 81920
//
// The reader also takes what else nvidia-smi writes: ' MiB' after the numbers, [N/A], other columns and orders, no
// header, a header per start, lines ended as on Windows, and a last line that was cut off.
struct GpuMemorySample {
  double seconds = 0;  // local time as if it were UTC, since 1970: differences are what counts; 0: not in the file
  int index = 0;
  std::string name;
  std::optional<double> used_MiB, total_MiB;  // none: the driver does not say
};
using GpuMemoryLog = MemoryLog<GpuMemorySample>;

inline constexpr const char* kGpuMemoryLogHeader = "timestamp, index, name, memory.used [MiB], memory.total [MiB]";
// One line with its end.
std::string gpu_memory_log_row(std::chrono::system_clock::time_point time, const GpuMemorySample& sample);

// Whether a file that begins like this is meant to be a GPU memory log.
bool is_gpu_memory_log(std::string_view text);
// Throw UsageError if the file is none, with its first line and what was expected.
GpuMemoryLog parse_gpu_memory_log(std::string_view text, const std::string& origin);
GpuMemoryLog read_gpu_memory_log(const std::filesystem::path& path);

}  // namespace tessera
