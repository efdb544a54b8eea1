// Writes a job's memory logs on this host while the job runs: one sampler per node.
//
//   MemorySamplerOptions options = sampler_options(environment);   // whom Slurm, MPI or the launcher started together
//   options.folder = ..., options.job = ..., options.processes.roots = {getpid()};
//   MemorySampler sampler(options);   // opens the files; throws
//   sampler.start();                  // the first sample is written when it returns
//   ... sampler.stop();               // writes the last sample
//
// Every sample is handed to the system at once, line by line, so that a killed run leaves logs that can be read. If the
// disk is full, one warning says so, and the run goes on. A host without GPUs gets no GPU log, one without a cgroup no
// cgroup log. The thread takes no signals.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/environment.h"
#include "core/file.h"
#include "monitor/job_processes.h"
#include "monitor/memory_logs.h"
#include "monitor/nvml.h"

namespace tessera {

struct MemorySamplerOptions {
  std::filesystem::path folder = ".";  // gpu_memory/ and cpu_memory/ are made in it
  std::string job;
  std::string host;  // in the names of the files; empty: the job has one node
  std::chrono::milliseconds period{5000};
  JobProcesses::Options processes;
  std::string slurm_job, slurm_job_gpus;  // SLURM_JOB_ID and SLURM_JOB_GPUS
  std::function<void(const std::string&)> warn;
  const char* nvml = "libnvidia-ml.so.1";
  std::filesystem::path root = "/";  // replaces / in tests
};

// The job's mark, Slurm's facts, and warnings as log lines.
MemorySamplerOptions sampler_options(const Environment& environment);

class MemorySampler {
 public:
  // Old logs of the same name are replaced, as nvidia-smi's and psrecord's are. Throws Error with path and reason.
  explicit MemorySampler(MemorySamplerOptions options);
  ~MemorySampler() { stop(); }
  MemorySampler(const MemorySampler&) = delete;
  MemorySampler& operator=(const MemorySampler&) = delete;

  void start();
  void stop();  // may be called twice

  const MemorySamplerOptions& options() const { return options_; }
  bool has_gpus() const { return !gpus_.empty(); }
  double cpu_seconds() const { return cpu_seconds_; }  // of the sampling thread so far
  double seconds() const;                              // from start() to stop()

 private:
  using Clock = std::chrono::steady_clock;

  void run(const std::stop_token& stop, std::promise<void> has_sampled);
  void sample();
  void sample_gpus();
  void sample_host();
  void append(AppendFile& file, const std::string& text);

  MemorySamplerOptions options_;
  std::vector<NvmlGpu> gpus_;
  std::unique_ptr<AppendFile> gpu_file_, cpu_file_, cgroup_file_;
  JobProcesses processes_;
  Clock::time_point begin_, end_;
  double last_elapsed_ = 0, last_cpu_seconds_ = 0;
  bool has_warned_ = false;
  std::atomic<double> cpu_seconds_ = 0;
  std::jthread thread_;
};

// What a monitored run says about its memory logs: where they are, and at the end what is in them.

// "job 4711: memory logs in ./cpu_memory/4711 and ./gpu_memory/4711"
std::string places_text(const MemorySampler& sampler);

// What `tessera analyze-memory` prints for the job, and what sampling cost. Call it after stop().
std::string sampled_text(const MemorySampler& sampler);

}  // namespace tessera
