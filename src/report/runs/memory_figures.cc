#include "report/runs/memory_figures.h"

#include <algorithm>

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sorted_logs(const RunRecord& run, const std::vector<std::string>& names) {
  std::vector<fs::path> files;
  for (const std::string& name : names) files.push_back(run.file.parent_path() / name);  // an absolute name stays
  const std::string head = run.hosts.empty() ? "" : "_" + run.hosts.front();
  std::sort(files.begin(), files.end(), [&](const fs::path& a, const fs::path& b) {
    const bool a_is_head = !head.empty() && a.stem().string().ends_with(head);
    const bool b_is_head = !head.empty() && b.stem().string().ends_with(head);
    return a_is_head != b_is_head ? a_is_head : a < b;
  });
  return files;
}

}  // namespace

std::vector<fs::path> gpu_logs_of(const RunRecord& run) {
  return sorted_logs(run, run.gpu_logs);
}

std::vector<fs::path> cpu_logs_of(const RunRecord& run) {
  return sorted_logs(run, run.cpu_logs);
}

RunMemory read_run_memory(const RunRecord& run) {
  MemoryLogs logs;
  logs.gpu = gpu_logs_of(run);
  logs.cpu = cpu_logs_of(run);
  const MemoryAnalysis analysis = analyze_memory_logs(logs);
  RunMemory memory;
  for (const GpuMemoryUse& gpu : analysis.gpus) {
    memory.gpus.push_back({gpu.file.stem().string(), gpu.index, gpu.used_MiB});
  }
  for (const HostMemoryUse& host : analysis.hosts) memory.hosts.push_back({host.file.stem().string(), host.used_MB});
  for (const auto* trouble :
       {&analysis.gpu_trouble, &analysis.gpu_file_trouble, &analysis.cpu_trouble, &analysis.cpu_file_trouble}) {
    memory.problems.insert(memory.problems.end(), trouble->begin(), trouble->end());
  }
  return memory;
}

}  // namespace tessera
