#include "monitor/nvml.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

namespace tessera {
namespace {

// The library's binary interface, which is stable: nvmlReturn_t is an int, nvmlDevice_t a pointer.
constexpr int kSuccess = 0;
struct Memory {
  unsigned long long total, free, used;
};
struct Utilisation {
  unsigned int gpu, memory;  // percent
};

template <typename Function>
bool find_function(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct NvmlGpu::Functions {
  int (*begin)() = nullptr;
  int (*device_by_address)(const char*, void**) = nullptr;
  int (*memory)(void*, Memory*) = nullptr;
  int (*utilisation)(void*, Utilisation*) = nullptr;
};

// Never closed: its threads and ours may still run in it when the process ends.
const NvmlGpu::Functions* NvmlGpu::functions_of(const char* library) {
  static std::mutex mutex;
  static std::map<std::string, std::optional<Functions>> known;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = known.try_emplace(library);
  if (is_new) {
    Functions found;
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr && find_function(handle, "nvmlInit_v2", found.begin) &&
        find_function(handle, "nvmlDeviceGetHandleByPciBusId_v2", found.device_by_address) &&
        find_function(handle, "nvmlDeviceGetMemoryInfo", found.memory) &&
        find_function(handle, "nvmlDeviceGetUtilizationRates", found.utilisation) && found.begin() == kSuccess) {
      at->second = found;
    }
  }
  return at->second ? &*at->second : nullptr;
}

std::unique_ptr<NvmlGpu> NvmlGpu::find(const std::string& pci_address, const char* library) {
  const Functions* functions = functions_of(library);
  void* device = nullptr;
  if (functions == nullptr || functions->device_by_address(pci_address.c_str(), &device) != kSuccess) return nullptr;
  return std::unique_ptr<NvmlGpu>(new NvmlGpu(*functions, device));
}

GpuReading NvmlGpu::read() const {
  GpuReading reading;
  Memory memory{};
  if (functions_.memory(device_, &memory) == kSuccess) reading.used_bytes = static_cast<std::int64_t>(memory.used);
  Utilisation utilisation{};
  if (functions_.utilisation(device_, &utilisation) == kSuccess) reading.busy_percent = utilisation.gpu;
  return reading;
}

}  // namespace tessera
