// Stands in for NVIDIA's library in nvml_test.cc: one GPU, at one address.
#include <cstring>

extern "C" {

int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  static int gpu;
  *device = &gpu;
  return std::strcmp(address, "00000000:1b:00.0") == 0 ? 0 : 6;  // 6: not found
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* total_free_used) {
  total_free_used[0] = 100;
  total_free_used[1] = 30;
  total_free_used[2] = 70;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, unsigned int* gpu_memory) {
  gpu_memory[0] = 42;
  gpu_memory[1] = 7;
  return 0;
}
}
