#include "monitor/process_usage.h"

#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

namespace tessera {
namespace {

std::atomic<std::int64_t> counted_live = 0, counted_peak = 0;  // of CPU tensors

// A block's size is stored before its data, one cache line ahead so that the data stays aligned.
constexpr std::size_t kAhead = 64;

void release_counted(void* data) {
  if (data == nullptr) return;
  char* block = static_cast<char*>(data) - kAhead;
  std::int64_t size = 0;
  std::memcpy(&size, block, sizeof size);
  counted_live -= size;
  c10::free_cpu(block);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    if (size == 0) return {nullptr, nullptr, &release_counted, c10::Device(c10::DeviceType::CPU)};
    char* block = static_cast<char*>(c10::alloc_cpu(size + kAhead));
    const auto bytes = static_cast<std::int64_t>(size);
    std::memcpy(block, &bytes, sizeof bytes);
    const std::int64_t now = counted_live += bytes;
    for (std::int64_t before = counted_peak; before < now && !counted_peak.compare_exchange_weak(before, now);) {
    }
    return {block + kAhead, block + kAhead, &release_counted, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_counted; }
  void copy_data(void* to, const void* from, std::size_t size) const override { std::memcpy(to, from, size); }
};

}  // namespace

ProcessUsage read_process_usage() {
  ProcessUsage usage;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"), std::fclose);
  long long num_pages = 0, num_resident = 0;
  if (file && std::fscanf(file.get(), "%lld %lld", &num_pages, &num_resident) == 2) {
    usage.resident_bytes = num_resident * sysconf(_SC_PAGESIZE);
  }
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0) usage.peak_resident_bytes = std::int64_t{used.ru_maxrss} * 1024;
  // The kernel updates its own peak lazily.
  usage.peak_resident_bytes = std::max(usage.peak_resident_bytes, usage.resident_bytes);
  timespec time{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0) {
    usage.cpu_seconds = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  return usage;
}

void start_counting_tensors(c10::Device device) {
  if (device.is_cpu()) {
    static CountingAllocator allocator;
    static const bool counts = (c10::SetCPUAllocator(&allocator, 1), true);  // once, though ranks may be threads
    static_cast<void>(counts);
    return;
  }
  at::empty({1}, at::device(device));  // the allocator knows a device only after its first tensor
  c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
}

std::int64_t peak_tensor_bytes(c10::Device device) {
  if (device.is_cpu()) return counted_peak;
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak;
}

}  // namespace tessera
