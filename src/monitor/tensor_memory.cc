#include "monitor/tensor_memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "monitor/cpu_tensors.h"

namespace tessera {

void start_counting_tensors(c10::Device device) {
  if (device.is_cpu()) return start_counting_cpu_memory();
  at::empty({1}, at::device(device));  // the allocator knows a device only after its first tensor
  c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
}

std::int64_t peak_tensor_bytes(c10::Device device) {
  if (device.is_cpu()) return peak_cpu_bytes();
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak;
}

}  // namespace tessera
