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
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct CpuMemorySample {
  double elapsed_seconds = 0, cpu_percent = 0, real_MB = 0, virtual_MB = 0;
};
struct CpuMemoryLog {
  std::vector<CpuMemorySample> samples;
  int num_unreadable = 0;  // lines that are no sample, except a cut-off last one
};

struct CgroupMemorySample {
  double elapsed_seconds = 0, used_MB = 0;
};
struct CgroupMemoryLog {
  std::vector<CgroupMemorySample> samples;
  int num_unreadable = 0;
};

// Each a line with its end.
std::string cpu_memory_log_header();
std::string cpu_memory_log_row(const CpuMemorySample& sample);
std::string cgroup_memory_log_header();
std::string cgroup_memory_log_row(const CgroupMemorySample& sample);

// Whether a file that begins like this is meant to be such a log.
bool is_cpu_memory_log(std::string_view text);
bool is_cgroup_memory_log(std::string_view text);
// Throw UsageError if the file is none, with its first line and what was expected.
CpuMemoryLog parse_cpu_memory_log(std::string_view text, const std::string& origin);
CpuMemoryLog read_cpu_memory_log(const std::filesystem::path& path);
CgroupMemoryLog parse_cgroup_memory_log(std::string_view text, const std::string& origin);
CgroupMemoryLog read_cgroup_memory_log(const std::filesystem::path& path);

}  // namespace tessera
