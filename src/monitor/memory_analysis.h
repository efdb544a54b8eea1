// What memory logs say: peak, average and modes, per GPU and per file. `tessera analyze-memory` prints it, and tables
// take their cells from it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "monitor/memory_logs.h"

namespace tessera {

// Of all samples of one GPU or host; MiB in GPU logs, MB (also 2^20 bytes) in CPU logs.
struct MemoryStatistics {
  std::size_t num_samples = 0;
  double peak = 0, average = 0;
  std::vector<double> modes;  // the most frequent whole numbers, ascending: samples are rounded first
};

MemoryStatistics memory_statistics(const std::vector<double>& values);
std::string modes_text(const MemoryStatistics& statistics);  // "2145, 2177"

struct GpuMemoryUse {
  std::filesystem::path file;
  int index = 0;
  std::string name;
  std::optional<double> total_MiB;
  MemoryStatistics used_MiB;
};

struct HostMemoryUse {
  std::filesystem::path file;
  MemoryStatistics used_MB;                           // resident, or of the cgroup
  double mean_cpu_percent = 0, peak_cpu_percent = 0;  // 0 for a cgroup
};

// Something wrong with the logs, as a line for users.
struct MemoryTrouble {
  enum class Of { kGpu, kCpu } of;
  bool is_missing = false;  // no log at all; else a file that cannot be read, in whole or in part
  std::string line;
};

struct MemoryAnalysis {
  std::vector<GpuMemoryUse> gpus;             // by file, then by index
  std::vector<HostMemoryUse> hosts, cgroups;  // by file
  std::vector<MemoryTrouble> troubles;        // of GPU logs, then of CPU logs

  bool is_empty() const { return gpus.empty() && hosts.empty() && cgroups.empty(); }
};

enum class MemoryKinds { kAll, kGpu, kCpu };

// A file that is no memory log is named in the trouble, not thrown.
MemoryAnalysis analyze_memory_logs(const MemoryLogs& logs);
// The logs of a job below a folder; missing ones are named.
MemoryAnalysis analyze_memory_of_job(const std::filesystem::path& folder, const std::string& job,
                                     MemoryKinds kinds = MemoryKinds::kAll);

// Under 'GPU Memory Usage' a line per GPU, under 'CPU Memory Usage' three lines per file, an empty line before each.
std::string memory_text(const MemoryAnalysis& analysis);
Json memory_json(const MemoryAnalysis& analysis);

}  // namespace tessera
