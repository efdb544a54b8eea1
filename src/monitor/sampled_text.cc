#include "monitor/sampled_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "monitor/memory_analysis.h"

namespace tessera {

std::string places_text(const MemorySampler& sampler) {
  const MemorySamplerOptions& options = sampler.options();
  std::string text =
      fmt::format("job {}: memory logs in {}", options.job, cpu_memory_folder(options.folder, options.job).string());
  if (sampler.has_gpus()) text += " and " + gpu_memory_folder(options.folder, options.job).string();
  return text;
}

std::string sampled_text(const MemorySampler& sampler) {
  const MemorySamplerOptions& options = sampler.options();
  const MemoryAnalysis analysis =
      analyze_memory_of_job(options.folder, options.job, sampler.has_gpus() ? MemoryKinds::kAll : MemoryKinds::kCpu);
  return fmt::format(
      "Analyzing logs for job ID: {} under {}\n{}\nSampling took {:.3f} s of CPU time in {:.1f} s ({:.2f} %)\n",
      options.job, options.folder.string(), memory_text(analysis), sampler.cpu_seconds(), sampler.seconds(),
      100 * sampler.cpu_seconds() / std::max(sampler.seconds(), 1e-9));
}

}  // namespace tessera
