#include "support/counting_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <cstring>

namespace tessera {
namespace {

std::atomic<std::int64_t> live{0}, peak{0};

// What was asked for stands before the data, one cache line ahead so that the data stays aligned.
constexpr std::size_t kAhead = 64;

void release(void* data) {
  if (data == nullptr) return;
  char* block = static_cast<char*>(data) - kAhead;
  std::int64_t size = 0;
  std::memcpy(&size, block, sizeof size);
  live -= size;
  c10::free_cpu(block);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    if (size == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    char* block = static_cast<char*>(c10::alloc_cpu(size + kAhead));
    const auto counted = static_cast<std::int64_t>(size);
    std::memcpy(block, &counted, sizeof counted);
    const std::int64_t now = live += counted;
    for (std::int64_t before = peak; before < now && !peak.compare_exchange_weak(before, now);) {
    }
    return {block + kAhead, block + kAhead, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t size) const override { std::memcpy(to, from, size); }
};

}  // namespace

void start_counting_cpu_memory() {
  static CountingAllocator allocator;
  static const bool once = [] {
    c10::SetCPUAllocator(&allocator, 1);
    return true;
  }();
  (void)once;
}

std::int64_t live_cpu_bytes() {
  return live;
}

std::int64_t peak_cpu_bytes() {
  return peak;
}

void reset_peak_cpu_bytes() {
  peak = live.load();
}

}  // namespace tessera
