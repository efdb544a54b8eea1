// What NVIDIA's management library reports for a GPU: memory used by all processes, and how busy it is.
//
// The library belongs to the driver and is opened at run time: a machine without it works, but has no readings. Calls
// cost tens of microseconds and do not wait for the GPU's work. Safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct GpuReading {
  // By all processes, as nvidia-smi shows it: without what the driver reserves for itself (615 MiB of an H200), except
  // with drivers before R510, which cannot tell the two apart.
  std::optional<std::int64_t> used_bytes;
  std::optional<std::int64_t> total_bytes;
  std::optional<double> busy_percent;  // over the last moments, as nvidia-smi shows it
};

class NvmlGpu {
 public:
  // By its PCI address, "00000000:1b:00.0". Null if there is no such library or it does not know the GPU.
  static std::unique_ptr<NvmlGpu> find(const std::string& pci_address, const char* library = "libnvidia-ml.so.1");
  // All that nvidia-smi lists, in its order: CUDA_VISIBLE_DEVICES hides none, a container or a Slurm job may.
  static std::vector<NvmlGpu> all(const char* library = "libnvidia-ml.so.1");

  int index() const { return index_; }               // in nvidia-smi; -1: unknown
  const std::string& name() const { return name_; }  // "NVIDIA H200"
  // What cannot be read is empty.
  GpuReading read() const;

 private:
  struct Functions;
  NvmlGpu(const Functions& functions, void* device);
  static const Functions* functions_of(const char* library);

  const Functions* functions_;
  void* device_;
  int index_ = -1;
  std::string name_;
};

// Which of a host's GPUs a Slurm job has: those that SLURM_JOB_GPUS names ("0,2-3"), by their index. All of them if it
// is empty or not readable, or names as many as there are: Slurm then hides the others, and the rest are renumbered.
std::vector<NvmlGpu> gpus_of_job(const std::vector<NvmlGpu>& gpus, const std::string& slurm_job_gpus);

}  // namespace tessera
