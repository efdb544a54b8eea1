#include "monitor/tensor_memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <cstring>

namespace tessera {
namespace {

std::atomic<std::int64_t> live_bytes = 0, peak_bytes = 0;

// Ahead of the data stands its size; a whole cache line, so that the data stay aligned.
constexpr std::size_t kAhead = 64;

void give_back(void* data) {
  if (data == nullptr) return;
  char* block = static_cast<char*>(data) - kAhead;
  std::int64_t size = 0;
  std::memcpy(&size, block, sizeof size);
  live_bytes -= size;
  c10::free_cpu(block);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t num_bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (num_bytes == 0) return {nullptr, nullptr, &give_back, cpu};
    char* block = static_cast<char*>(c10::alloc_cpu(num_bytes + kAhead));
    const auto size = static_cast<std::int64_t>(num_bytes);
    std::memcpy(block, &size, sizeof size);
    const std::int64_t now = live_bytes += size;
    for (std::int64_t before = peak_bytes; before < now && !peak_bytes.compare_exchange_weak(before, now);) {
    }
    return {block + kAhead, block + kAhead, &give_back, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t num_bytes) const override { std::memcpy(to, from, num_bytes); }
};

}  // namespace

void start_counting_tensors(c10::Device device) {
  if (!device.is_cpu()) {
    at::empty({1}, at::device(device));  // the allocator knows a device from its first tensor on
    return c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
  }
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
}

std::int64_t peak_tensor_bytes(c10::Device device) {
  if (device.is_cpu()) return peak_bytes;
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak;
}

}  // namespace tessera
