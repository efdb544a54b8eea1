// The only file that reads memory logs for lists and tables.
#include "report/runs/memory_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

MemoryFigures figures_of_samples(const std::vector<double>& samples) {
  MemoryFigures figures;
  std::map<double, int> counts;
  double sum = 0;
  for (const double sample : samples) {
    figures.peak = std::max(figures.peak, sample);
    sum += sample;
    ++counts[std::round(sample)];
  }
  if (!samples.empty()) figures.average = sum / static_cast<double>(samples.size());
  int most = 0;
  for (const auto& [value, count] : counts) most = std::max(most, count);
  for (const auto& [value, count] : counts) {
    if (count == most) figures.modes.push_back(value);
  }
  return figures;
}

// timestamp, index, name, memory.used [MiB], memory.total [MiB]
std::map<int, std::vector<double>> gpu_samples(const std::string& text) {
  std::map<int, std::vector<double>> samples;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> fields = split(line, ',');
    if (fields.size() < 4) continue;
    const std::optional<long long> index = parse_integer(trim(fields[1]));
    const std::optional<double> used = parse_real(trim(fields[3]));
    if (index && used) samples[static_cast<int>(*index)].push_back(*used);
  }
  return samples;
}

// # Elapsed time   CPU (%)     Real (MB)   Virtual (MB)
std::vector<double> host_samples(const std::string& text) {
  std::vector<double> samples;
  for (const std::string& line : split(text, '\n')) {
    std::istringstream words(line);
    double elapsed = 0, cpu = 0, real = 0;
    if (words >> elapsed >> cpu >> real) samples.push_back(real);
  }
  return samples;
}

// The logs of a run, the head node's first, then by name.
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

template <typename Read>
void read_each(const std::vector<fs::path>& files, std::vector<std::string>& problems, const Read& read) {
  for (const fs::path& file : files) {
    try {
      if (!read(file)) problems.push_back(file.string() + ": no samples");
    } catch (const Error& error) {
      problems.push_back(error.what());
    }
  }
}

}  // namespace

RunMemory read_run_memory(const RunRecord& run) {
  RunMemory memory;
  read_each(sorted_logs(run, run.gpu_logs), memory.problems, [&](const fs::path& file) {
    const std::map<int, std::vector<double>> by_index = gpu_samples(read_file(file));
    for (const auto& [index, samples] : by_index) {
      memory.gpus.push_back({file.stem().string(), index, figures_of_samples(samples)});
    }
    return !by_index.empty();
  });
  read_each(sorted_logs(run, run.cpu_logs), memory.problems, [&](const fs::path& file) {
    const std::vector<double> samples = host_samples(read_file(file));
    if (!samples.empty()) memory.hosts.push_back({file.stem().string(), figures_of_samples(samples)});
    return !samples.empty();
  });
  return memory;
}

}  // namespace tessera
