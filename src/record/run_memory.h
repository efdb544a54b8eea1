// Peak, average and most frequent values of a run's memory logs, the head node's first. (no torch)
#pragma once

#include <filesystem>
#include <vector>

#include "monitor/memory_analysis.h"
#include "record/run_record.h"

namespace tessera {

// GPUs: files by name, the head node's first, then by index; unused ones too.
struct RunMemory : MemoryAnalysis {
  std::size_t first_used = 0;  // of the head node's GPUs the first that the job used

  const GpuMemoryUse& first_gpu() const { return gpus.at(first_used); }
};

RunMemory read_run_memory(const RunRecord& run);
// The same, read the first time and then kept with the record.
const RunMemory& memory_of(const RunRecord& run);

// The logs that the record names, the head node's first, then by name.
std::vector<std::filesystem::path> gpu_logs_of(const RunRecord& run);
std::vector<std::filesystem::path> cpu_logs_of(const RunRecord& run);

}  // namespace tessera
