// What NVIDIA's management library reports for one GPU: memory used by all processes, and how busy it is.
//
// The library belongs to the driver and is opened at run time: a machine without it works, but has no readings. Calls
// cost tens of microseconds and do not wait for the GPU's work. Safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tessera {

struct GpuReading {
  std::optional<std::int64_t> used_bytes;  // by all processes, including the driver's own
  std::optional<double> busy_percent;      // over the last moments, as nvidia-smi shows it
};

class NvmlGpu {
 public:
  // By its PCI address, "00000000:1b:00.0". Null if there is no such library or it does not know the GPU.
  static std::unique_ptr<NvmlGpu> find(const std::string& pci_address, const char* library = "libnvidia-ml.so.1");

  // What cannot be read is empty.
  GpuReading read() const;

 private:
  struct Functions;
  NvmlGpu(const Functions& functions, void* device) : functions_(functions), device_(device) {}
  static const Functions* functions_of(const char* library);

  const Functions& functions_;
  void* device_;
};

}  // namespace tessera
