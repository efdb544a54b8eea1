#include "monitor/memory_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "monitor/memory_logs.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using Of = MemoryTrouble::Of;

// Reads one file by `read`; what goes wrong is added to the troubles, and the others are still read.
template <typename Read>
void add_file(const fs::path& file, Of of, MemoryAnalysis& analysis, const Read& read) {
  try {
    const int num_unreadable = read(file, analysis);
    if (num_unreadable > 0) {
      analysis.troubles.push_back(
          {of, false,
           fmt::format("[!] {}: {} line{} could not be read and {} left out", file.string(), num_unreadable,
                       num_unreadable == 1 ? "" : "s", num_unreadable == 1 ? "is" : "are")});
    }
  } catch (const UsageError& error) {
    analysis.troubles.push_back({of, false, fmt::format("[!] Failed to read {}", error.what())});
  }
}

int add_gpus(const fs::path& file, MemoryAnalysis& analysis) {
  const GpuMemoryLog log = read_gpu_memory_log(file);
  std::map<int, GpuMemoryUse> by_index;
  std::map<int, std::vector<double>> used;
  for (const GpuMemorySample& sample : log.samples) {
    GpuMemoryUse& gpu = by_index[sample.index];
    gpu.file = file;
    gpu.index = sample.index;
    gpu.name = sample.name;
    if (sample.total_MiB) gpu.total_MiB = sample.total_MiB;
    if (sample.used_MiB) used[sample.index].push_back(*sample.used_MiB);
  }
  for (auto& [index, gpu] : by_index) {
    gpu.used_MiB = memory_statistics(used[index]);
    analysis.gpus.push_back(std::move(gpu));
  }
  if (log.samples.empty()) {
    analysis.troubles.push_back({Of::kGpu, false, fmt::format("[!] No samples in {}", file.string())});
  }
  return log.num_unreadable;
}

int add_host(const fs::path& file, MemoryAnalysis& analysis) {
  const CpuMemoryLog log = read_cpu_memory_log(file);
  HostMemoryUse host{file, {}, 0, 0};
  std::vector<double> real;
  for (const CpuMemorySample& sample : log.samples) {
    real.push_back(sample.real_MB);
    host.mean_cpu_percent += sample.cpu_percent / static_cast<double>(log.samples.size());
    host.peak_cpu_percent = std::max(host.peak_cpu_percent, sample.cpu_percent);
  }
  host.used_MB = memory_statistics(real);
  if (real.empty()) {
    analysis.troubles.push_back({Of::kCpu, false, fmt::format("[!] No samples in {}", file.string())});
  } else {
    analysis.hosts.push_back(std::move(host));
  }
  return log.num_unreadable;
}

int add_cgroup(const fs::path& file, MemoryAnalysis& analysis) {
  const CgroupMemoryLog log = read_cgroup_memory_log(file);
  std::vector<double> used;
  for (const CgroupMemorySample& sample : log.samples) used.push_back(sample.used_MB);
  if (!used.empty()) analysis.cgroups.push_back({file, memory_statistics(used), 0, 0});
  return log.num_unreadable;
}

std::string trouble_lines(const MemoryAnalysis& analysis, Of of, bool is_missing) {
  std::string text;
  for (const MemoryTrouble& trouble : analysis.troubles) {
    if (trouble.of == of && trouble.is_missing == is_missing) text += trouble.line + "\n";
  }
  return text;
}

std::string gpu_line(const GpuMemoryUse& gpu) {
  const std::string who = fmt::format("[{} - GPU {}]", gpu.file.stem().string(), gpu.index);
  if (gpu.used_MiB.num_samples == 0) return who + " the driver does not say how much memory is used\n";
  return fmt::format("{} Peak = {:.0f} MiB, Avg = {:.2f} MiB, Mode = {} MiB\n", who, gpu.used_MiB.peak,
                     gpu.used_MiB.average, modes_text(gpu.used_MiB));
}

// Several files are told apart by their names; a lone one has none before it.
std::string host_lines(const std::vector<HostMemoryUse>& hosts) {
  std::string text;
  for (const HostMemoryUse& host : hosts) {
    if (hosts.size() > 1) text += fmt::format("   [{}]\n", host.file.stem().string());
    text += fmt::format("   Peak =    {:.0f} MB\n   Average = {:.2f} MB\n   Mode =    {} MB\n", host.used_MB.peak,
                        host.used_MB.average, modes_text(host.used_MB));
  }
  return text;
}

Json statistics_json(const MemoryStatistics& statistics, const std::string& unit) {
  return {{"samples", statistics.num_samples},
          {"peak_" + unit, statistics.peak},
          {"average_" + unit, statistics.average},
          {"mode_" + unit, statistics.modes}};
}

Json hosts_json(const std::vector<HostMemoryUse>& hosts, bool has_cpu) {
  Json list = Json::array();
  for (const HostMemoryUse& host : hosts) {
    Json entry = {{"file", host.file.string()}};
    entry.update(statistics_json(host.used_MB, "MB"));
    if (has_cpu) entry["mean_cpu_percent"] = host.mean_cpu_percent;
    if (has_cpu) entry["peak_cpu_percent"] = host.peak_cpu_percent;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

MemoryStatistics memory_statistics(const std::vector<double>& values) {
  MemoryStatistics statistics;
  statistics.num_samples = values.size();
  if (values.empty()) return statistics;
  std::map<double, std::size_t> counts;
  std::size_t most = 0;
  double sum = 0;
  for (const double value : values) {
    sum += value;
    most = std::max(most, ++counts[std::nearbyint(value)]);
  }
  statistics.peak = *std::ranges::max_element(values);
  statistics.average = sum / static_cast<double>(values.size());
  for (const auto& [value, count] : counts) {
    if (count == most) statistics.modes.push_back(value);
  }
  return statistics;
}

std::string modes_text(const MemoryStatistics& statistics) {
  return join(texts_of(statistics.modes, [](double mode) { return fmt::format("{:.0f}", mode); }), ", ");
}

MemoryAnalysis analyze_memory_logs(const MemoryLogs& logs) {
  MemoryAnalysis analysis;
  for (const fs::path& file : logs.gpu) add_file(file, Of::kGpu, analysis, add_gpus);
  for (const fs::path& file : logs.cpu) add_file(file, Of::kCpu, analysis, add_host);
  for (const fs::path& file : logs.cgroup) add_file(file, Of::kCpu, analysis, add_cgroup);
  return analysis;
}

MemoryAnalysis analyze_memory_of_job(const fs::path& folder, const std::string& job, MemoryKinds kinds) {
  MemoryLogs logs = find_memory_logs(folder, job);
  if (kinds == MemoryKinds::kGpu) logs.cpu = logs.cgroup = {};
  if (kinds == MemoryKinds::kCpu) logs.gpu = {};
  MemoryAnalysis analysis = analyze_memory_logs(logs);
  const fs::path gpu_folder = gpu_memory_folder(folder, job);
  if (kinds != MemoryKinds::kCpu && logs.gpu.empty()) {
    const bool has_folder = is_folder(gpu_folder);
    // Before those of CPU logs.
    analysis.troubles.insert(
        analysis.troubles.begin(),
        {Of::kGpu, true,
         fmt::format("[!] {} {}",
                     has_folder ? "No GPU logs found in" : "GPU log directory not found:", gpu_folder.string())});
  }
  if (kinds != MemoryKinds::kGpu && logs.cpu.empty()) {
    analysis.troubles.push_back(
        {Of::kCpu, true,
         fmt::format("[!] CPU log not found: {}", memory_logs_of_host(folder, job, "").cpu.front().string())});
  }
  return analysis;
}

std::string memory_text(const MemoryAnalysis& analysis) {
  const std::string gpu_file_lines = trouble_lines(analysis, Of::kGpu, false);
  std::string text = trouble_lines(analysis, Of::kGpu, true);
  if (!analysis.gpus.empty() || !gpu_file_lines.empty()) {
    text += "\nGPU Memory Usage\n";
    for (const GpuMemoryUse& gpu : analysis.gpus) text += gpu_line(gpu);
    text += gpu_file_lines;
  }
  text += trouble_lines(analysis, Of::kCpu, true);
  if (!analysis.hosts.empty()) text += "\nCPU Memory Usage\n" + host_lines(analysis.hosts);
  text += trouble_lines(analysis, Of::kCpu, false);
  if (!analysis.cgroups.empty()) text += "\nCgroup Memory Usage (without page cache)\n" + host_lines(analysis.cgroups);
  return text;
}

Json memory_json(const MemoryAnalysis& analysis) {
  Json json = {{"gpu", Json::array()}};
  for (const GpuMemoryUse& gpu : analysis.gpus) {
    Json entry = {{"file", gpu.file.string()}, {"index", gpu.index}, {"name", gpu.name}, {"total_MiB", gpu.total_MiB}};
    entry.update(statistics_json(gpu.used_MiB, "MiB"));
    json["gpu"].push_back(std::move(entry));
  }
  json["cpu"] = hosts_json(analysis.hosts, true);
  json["cgroup"] = hosts_json(analysis.cgroups, false);
  json["trouble"] = texts_of(analysis.troubles, &MemoryTrouble::line);
  return json;
}

}  // namespace tessera
