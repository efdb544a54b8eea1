#include "record/run_memory.h"

#include <algorithm>

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sorted_logs(const RunRecord& run, const std::vector<std::string>& names) {
  std::vector<fs::path> files;
  for (const std::string& name : names) files.push_back(run.file.parent_path() / name);  // an absolute name stays
  const std::string head = run.hosts.empty() ? "" : "_" + run.hosts.front();
  std::ranges::sort(files, [&](const fs::path& a, const fs::path& b) {
    const bool a_is_head = !head.empty() && a.stem().string().ends_with(head);
    const bool b_is_head = !head.empty() && b.stem().string().ends_with(head);
    return a_is_head != b_is_head ? a_is_head : a < b;
  });
  return files;
}

// A job may use only some of a host's GPUs, and not the first. One that it used held at its peak at least half of what
// rank 0 saw on its own; without that figure, its memory changed while the job ran.
std::size_t first_used_gpu(const RunRecord& run, const std::vector<GpuMemoryUse>& gpus) {
  const std::optional<double> peak =
      run.ranks.empty() ? std::nullopt : run.ranks.front().numbers.number("used_peak_MB");
  for (std::size_t i = 0; i < gpus.size() && gpus[i].file == gpus.front().file; ++i) {
    const MemoryStatistics& used = gpus[i].used_MiB;
    if (peak ? used.peak >= *peak / 2 : used.peak > used.average) return i;
  }
  return 0;
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
  RunMemory memory{analyze_memory_logs(logs)};
  memory.first_used = first_used_gpu(run, memory.gpus);
  return memory;
}

const RunMemory& memory_of(const RunRecord& run) {
  if (!run.memory) run.memory = std::make_shared<RunMemory>(read_run_memory(run));
  return *run.memory;
}

}  // namespace tessera
