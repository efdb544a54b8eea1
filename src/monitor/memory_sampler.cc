#include "monitor/memory_sampler.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/host.h"
#include "core/log.h"
#include "core/quantity.h"
#include "monitor/host_info.h"
#include "monitor/memory_analysis.h"
#include "monitor/memory_logs.h"

namespace tessera {
namespace {

double in_MiB(std::int64_t bytes) {
  return static_cast<double>(bytes) / kBytesPerMb;
}

// nvidia-smi rounds up: 3.25 MiB are shown as 4.
std::optional<double> whole_MiB(const std::optional<std::int64_t>& bytes) {
  return bytes ? std::optional(std::ceil(in_MiB(*bytes))) : std::nullopt;
}

// Blocks all signals for this thread and those that it starts while this exists.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &former_, nullptr); }

 private:
  sigset_t former_;
};

}  // namespace

MemorySamplerOptions sampler_options(const Environment& environment) {
  MemorySamplerOptions options;
  options.processes.mark = job_mark(environment);
  options.slurm_job = environment.find("SLURM_JOB_ID").value_or("");
  // SLURM_JOB_GPUS has the first node's GPUs, wherever it is read; a step has those of its own node.
  const bool is_other_node = environment.find("SLURM_NODEID").value_or("0") != "0";
  const auto of_step = is_other_node ? environment.find("SLURM_STEP_GPUS") : std::nullopt;
  options.slurm_job_gpus = of_step ? *of_step : environment.find("SLURM_JOB_GPUS").value_or("");
  options.warn = [](const std::string& message) { log_warn("{}", message); };
  return options;
}

MemorySampler::MemorySampler(MemorySamplerOptions options)
    : options_(std::move(options)),
      gpus_(gpus_of_job(NvmlGpu::all(options_.nvml), options_.slurm_job_gpus)),
      processes_(options_.processes, options_.root / "proc") {
  const MemoryLogs paths = memory_logs_of_host(options_.folder, options_.job, options_.host);
  const auto open = [&](const std::filesystem::path& path, const std::string& header) {
    auto file = std::make_unique<AppendFile>(path, AppendFile::Mode::kReplace);
    append(*file, header + "\n");
    return file;
  };
  cpu_file_ = open(paths.cpu.front(), kCpuMemoryLogHeader);
  if (!gpus_.empty()) gpu_file_ = open(paths.gpu.front(), kGpuMemoryLogHeader);
  if (read_cgroup_used_bytes(options_.slurm_job, options_.root)) {
    cgroup_file_ = open(paths.cgroup.front(), kCgroupMemoryLogHeader);
  }
}

void MemorySampler::start() {
  begin_ = Clock::now();
  const NoSignals here;
  std::promise<void> has_sampled;
  const std::future<void> first = has_sampled.get_future();
  thread_ = std::jthread(std::bind_front(&MemorySampler::run, this), std::move(has_sampled));
  first.wait();
}

void MemorySampler::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  end_ = Clock::now();
}

void MemorySampler::run(const std::stop_token& stop, std::promise<void> has_sampled) {
  sample();
  has_sampled.set_value();
  Clock::time_point next = begin_;
  for (bool is_last = false; !is_last;) {
    next = std::max(next + options_.period, Clock::now());
    is_last = !sleep_until(stop, next);
    sample();
  }
}

void MemorySampler::sample() {
  sample_gpus();
  sample_host();
  cpu_seconds_ = thread_cpu_seconds();
}

void MemorySampler::sample_gpus() {
  const auto now = std::chrono::system_clock::now();
  std::string rows;
  for (const NvmlGpu& gpu : gpus_) {
    const GpuReading reading = gpu.read();
    rows += gpu_memory_log_row(
        now, {0, gpu.index(), gpu.name(), whole_MiB(reading.used_bytes), whole_MiB(reading.total_bytes)});
  }
  if (gpu_file_) append(*gpu_file_, rows);
}

void MemorySampler::sample_host() {
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
  const JobUsage usage = processes_.read();
  const double interval = elapsed - last_elapsed_;
  const double cpu_percent = interval > 0 ? 100 * (usage.cpu_seconds - last_cpu_seconds_) / interval : 0;
  last_elapsed_ = elapsed;
  last_cpu_seconds_ = usage.cpu_seconds;
  // When all have ended there is nothing to write, as with psrecord: a row of zeros would spoil the average.
  if (usage.num_processes > 0) {
    append(*cpu_file_,
           cpu_memory_log_row({elapsed, cpu_percent, in_MiB(usage.resident_bytes), in_MiB(usage.virtual_bytes)}));
  }
  if (!cgroup_file_) return;
  if (const auto used = read_cgroup_used_bytes(options_.slurm_job, options_.root)) {
    append(*cgroup_file_, cgroup_memory_log_row({elapsed, in_MiB(*used)}));
  }
}

void MemorySampler::append(AppendFile& file, const std::string& text) {
  try {
    file.append(text);
  } catch (const Error& error) {
    if (!has_warned_ && options_.warn) options_.warn(std::string(error.what()) + "; the memory logs have gaps");
    has_warned_ = true;
  }
}

double MemorySampler::seconds() const {
  return std::chrono::duration<double>((thread_.joinable() ? Clock::now() : end_) - begin_).count();
}

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
