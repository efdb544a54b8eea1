#include "monitor/nvml.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <set>

#include "core/text.h"

namespace tessera {
namespace {

// The library's binary interface, which is stable: nvmlReturn_t is an int, nvmlDevice_t a pointer.
constexpr int kSuccess = 0;
struct Memory {
  unsigned long long total, free, used;
};
struct Memory2 {
  unsigned int version;  // the struct's size, and 2 in the highest byte
  unsigned long long total, reserved, free, used;
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
  // Null where the library is too old for it.
  int (*memory2)(void*, Memory2*) = nullptr;
  int (*count)(unsigned int*) = nullptr;
  int (*device_by_index)(unsigned int, void**) = nullptr;
  int (*index)(void*, unsigned int*) = nullptr;
  int (*name)(void*, char*, unsigned int) = nullptr;
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
      find_function(handle, "nvmlDeviceGetMemoryInfo_v2", found.memory2);
      find_function(handle, "nvmlDeviceGetCount_v2", found.count);
      find_function(handle, "nvmlDeviceGetHandleByIndex_v2", found.device_by_index);
      find_function(handle, "nvmlDeviceGetIndex", found.index);
      find_function(handle, "nvmlDeviceGetName", found.name);
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

std::vector<NvmlGpu> NvmlGpu::all(const char* library) {
  std::vector<NvmlGpu> gpus;
  const Functions* functions = functions_of(library);
  unsigned int count = 0;
  if (functions == nullptr || functions->count == nullptr || functions->device_by_index == nullptr) return gpus;
  if (functions->count(&count) != kSuccess) return gpus;
  for (unsigned int i = 0; i < count; ++i) {
    void* device = nullptr;
    if (functions->device_by_index(i, &device) == kSuccess) gpus.push_back(NvmlGpu(*functions, device));
  }
  return gpus;
}

NvmlGpu::NvmlGpu(const Functions& functions, void* device) : functions_(&functions), device_(device) {
  unsigned int index = 0;
  if (functions.index != nullptr && functions.index(device, &index) == kSuccess) index_ = static_cast<int>(index);
  char name[96] = "";  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
  if (functions.name != nullptr && functions.name(device, name, sizeof name) == kSuccess) name_ = name;
}

GpuReading NvmlGpu::read() const {
  GpuReading reading;
  Memory2 memory2{};
  memory2.version = sizeof(Memory2) | (2U << 24);
  Memory memory{};
  if (functions_->memory2 != nullptr && functions_->memory2(device_, &memory2) == kSuccess) {
    reading.used_bytes = static_cast<std::int64_t>(memory2.used);
    reading.total_bytes = static_cast<std::int64_t>(memory2.total);
  } else if (functions_->memory(device_, &memory) == kSuccess) {
    reading.used_bytes = static_cast<std::int64_t>(memory.used);
    reading.total_bytes = static_cast<std::int64_t>(memory.total);
  }
  Utilisation utilisation{};
  if (functions_->utilisation(device_, &utilisation) == kSuccess) reading.busy_percent = utilisation.gpu;
  return reading;
}

std::vector<NvmlGpu> gpus_of_job(const std::vector<NvmlGpu>& gpus, const std::string& slurm_job_gpus) {
  std::set<int> wanted;
  for (const std::string& part : split(slurm_job_gpus, ',')) {
    const auto ends = split(part, '-');
    const auto first = parse_integer(trim(ends.front())), last = parse_integer(trim(ends.back()));
    if (ends.size() > 2 || !first || !last || *first < 0 || *last > 9999) return gpus;
    for (long long index = *first; index <= *last; ++index) wanted.insert(static_cast<int>(index));
  }
  if (wanted.size() >= gpus.size()) return gpus;
  std::vector<NvmlGpu> chosen;
  for (const NvmlGpu& gpu : gpus) {
    if (wanted.contains(gpu.index())) chosen.push_back(gpu);
  }
  return chosen.empty() ? gpus : chosen;
}

}  // namespace tessera
