// Counts the bytes of live CPU tensors exactly, of the process and of each thread: the process's resident memory cannot
// tell, since freed pages stay resident.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace tessera {
namespace counted_memory {

struct Account {
  std::atomic<std::int64_t> live{0}, peak{0};

  void add(std::int64_t bytes) {
    const std::int64_t now = live += bytes;
    for (std::int64_t before = peak; before < now && !peak.compare_exchange_weak(before, now);) {
    }
  }
  void reset_peak() { peak = live.load(); }
};

inline Account all_threads;

// Never freed: what a thread allocated may be freed after the thread ends.
inline Account& of_thread() {
  thread_local Account* const own = new Account;
  return *own;
}

// The size and the allocating thread are stored before the data, one cache line ahead so that the data stays aligned.
struct Header {
  std::int64_t size;
  Account* account;
};
constexpr std::size_t kAhead = 64;

inline void release(void* data) {
  if (data == nullptr) return;
  char* block = static_cast<char*>(data) - kAhead;
  Header header{};
  std::memcpy(&header, block, sizeof header);
  all_threads.live -= header.size;
  header.account->live -= header.size;
  c10::free_cpu(block);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    if (size == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    char* block = static_cast<char*>(c10::alloc_cpu(size + kAhead));
    const Header header{static_cast<std::int64_t>(size), &of_thread()};
    std::memcpy(block, &header, sizeof header);
    all_threads.add(header.size);
    header.account->add(header.size);
    return {block + kAhead, block + kAhead, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t size) const override { std::memcpy(to, from, size); }
};

}  // namespace counted_memory

// From the first call on, all CPU tensors of the process are counted.
inline void start_counting_cpu_memory() {
  static counted_memory::CountingAllocator allocator;
  static const bool once = [] {
    c10::SetCPUAllocator(&allocator, 1);
    return true;
  }();
  (void)once;
}

inline std::int64_t live_cpu_bytes() {
  return counted_memory::all_threads.live;
}
inline std::int64_t peak_cpu_bytes() {  // since the start or the last reset
  return counted_memory::all_threads.peak;
}
inline void reset_peak_cpu_bytes() {  // to what is alive now
  counted_memory::all_threads.reset_peak();
}

// The same for what the calling thread allocated, whichever thread frees it: for one rank, if ranks are threads.
inline std::int64_t live_cpu_bytes_of_thread() {
  return counted_memory::of_thread().live;
}
inline std::int64_t peak_cpu_bytes_of_thread() {
  return counted_memory::of_thread().peak;
}
inline void reset_peak_cpu_bytes_of_thread() {
  counted_memory::of_thread().reset_peak();
}

}  // namespace tessera
