// The GPU memory log: the file that `nvidia-smi --query-gpu=timestamp,index,name,memory.used,memory.total
// --format=csv,nounits -l 5` writes.
//
//   timestamp, index, name, memory.used [MiB], memory.total [MiB]
//   2025/01/31 12:00:00.123, 0, NVIDIA A100-SXM4-80GB, 26532, 81920
//
// The reader also takes what else nvidia-smi writes: ' MiB' after the numbers, [N/A], other columns and orders, no
// header, a header per start, lines ended as on Windows, and a last line that was cut off.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct GpuMemorySample {
  double seconds = 0;  // local time as if it were UTC, since 1970: differences are what counts; 0: not in the file
  int index = 0;
  std::string name;
  std::optional<double> used_MiB, total_MiB;  // none: the driver does not say
};

struct GpuMemoryLog {
  std::vector<GpuMemorySample> samples;
  int num_unreadable = 0;  // lines that are no sample, except a cut-off last one
};

std::string gpu_memory_log_header();
// One line with its end.
std::string gpu_memory_log_row(std::chrono::system_clock::time_point time, const GpuMemorySample& sample);

// Whether a file that begins like this is meant to be a GPU memory log.
bool is_gpu_memory_log(std::string_view text);
// Throw UsageError if the file is none, with its first line and what was expected.
GpuMemoryLog parse_gpu_memory_log(std::string_view text, const std::string& origin);
GpuMemoryLog read_gpu_memory_log(const std::filesystem::path& path);

}  // namespace tessera
