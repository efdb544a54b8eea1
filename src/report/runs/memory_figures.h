// Peak, average and most frequent values of a run's memory logs: nvidia-smi's CSV per GPU, psrecord's text per host.
// (no torch)
#pragma once

#include <string>
#include <vector>

#include "report/run_record.h"

namespace tessera {

struct MemoryFigures {
  double peak = 0, average = 0;
  std::vector<double> modes;  // all most frequent values, rounded, ascending
};

struct GpuMemory {
  std::string log;  // the file's stem: gpu_memory_log_node2
  int index = 0;    // nvidia-smi's
  MemoryFigures MiB;
};

struct HostMemory {
  std::string log;
  MemoryFigures MiB;  // psrecord's MB are 2^20 bytes
};

struct RunMemory {
  std::vector<GpuMemory> gpus;  // files by name, then by index: the first is GPU 0 of the head node
  std::vector<HostMemory> hosts;
  std::vector<std::string> problems;  // logs that the record names and that cannot be read
};

RunMemory read_run_memory(const RunRecord& run);

}  // namespace tessera
