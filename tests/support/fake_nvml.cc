// Stands in for NVIDIA's library in tests: four GPUs, the first at a known address. The last cannot be read.
#include <cstdio>
#include <cstring>

namespace {
int gpus[4];  // a device is the address of one of these
unsigned int index_of(const void* device) {
  return static_cast<unsigned int>(static_cast<const int*>(device) - gpus);
}
constexpr int kNotFound = 6, kGpuIsLost = 15;
constexpr unsigned long long kMiB = 1ULL << 20;
}  // namespace

extern "C" {

int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  *device = &gpus[0];
  return std::strcmp(address, "00000000:1b:00.0") == 0 ? 0 : kNotFound;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 4;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  *device = &gpus[index];
  return index < 4 ? 0 : kNotFound;
}
int nvmlDeviceGetIndex(void* device, unsigned int* index) {
  *index = index_of(device);
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned int size) {
  std::snprintf(name, size, "NVIDIA A100-SXM4-80GB");
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long*) {
  return kGpuIsLost;  // the newer call is preferred
}
// {version, total, reserved, free, used}. GPU i uses 100 i MiB and a quarter of one, which nvidia-smi rounds up.
int nvmlDeviceGetMemoryInfo_v2(void* device, unsigned long long* info) {
  unsigned int version = 0;
  std::memcpy(&version, info, sizeof version);
  if (version != (40U | 2U << 24) || index_of(device) == 3) return kGpuIsLost;
  info[1] = 81920 * kMiB;
  info[2] = 600 * kMiB;
  info[4] = 100 * index_of(device) * kMiB + kMiB / 4;
  info[3] = info[1] - info[2] - info[4];
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned int* gpu_memory) {
  gpu_memory[0] = 42 + index_of(device);
  gpu_memory[1] = 7;
  return 0;
}
}
