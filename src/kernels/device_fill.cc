#include "kernels/device_fill.h"

#include <ATen/Parallel.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "core/log.h"
#include "kernels/parallel.h"

namespace tessera::kernels {
namespace {

struct Buffer {
  at::Tensor numbers;
  std::optional<c10::Event> copied{};  // the last copy out of it
};

// A buffer for every thread, and some whose copies are still on their way.
class Buffers {
 public:
  Buffers(at::ScalarType type, std::int64_t numel, std::int64_t most) : type_(type), numel_(numel), most_(most) {}

  Buffer take() {
    Buffer oldest;
    {
      const std::lock_guard lock(mutex_);
      if (free_.empty() || (num_made_ < most_ && !free_.front().copied->query())) {
        ++num_made_;
      } else {
        oldest = std::move(free_.front());
        free_.pop_front();
      }
    }
    if (!oldest.numbers.defined()) return {locked_or_pageable(numel_, type_)};
    oldest.copied->synchronize();
    return oldest;
  }
  void give_back(Buffer buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  at::ScalarType type_;
  std::int64_t numel_, most_, num_made_ = 0;
  std::mutex mutex_;
  std::deque<Buffer> free_;  // the longest unused first
};

}  // namespace

void fill_device(const at::Tensor& to, at::ScalarType type, std::int64_t piece_numel,
                 c10::function_ref<void(std::int64_t begin, const at::Tensor& piece)> make) {
  const at::Device device = to.device();
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  const std::int64_t numel = to.numel(), num_pieces = (numel + piece_numel - 1) / piece_numel;
  Buffers buffers(type, std::min(numel, piece_numel), std::min<std::int64_t>(num_pieces, at::get_num_threads() + 4));
  parallel_parts(0, numel, piece_numel, [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_gradients;  // of this thread, as is the stream
    const c10::StreamGuard on_stream(stream);
    Buffer buffer = buffers.take();
    const at::Tensor piece = buffer.numbers.narrow(0, 0, end - begin);
    make(begin, piece);
    // Another type is converted by the device, not by the host.
    to.narrow(0, begin, end - begin)
        .copy_(type == to.scalar_type() ? piece : piece.to(device, /*non_blocking=*/true), /*non_blocking=*/true);
    if (!buffer.copied) buffer.copied.emplace(device.type());
    buffer.copied->record(stream);
    buffers.give_back(std::move(buffer));
  });
}

void free_fill_buffers(at::Device device) {
  if (device.is_cuda()) at::getHostAllocator(device.type())->empty_cache();
}

at::Tensor locked_or_pageable(std::int64_t numel, at::ScalarType type) {
  try {
    return at::empty({numel}, at::dtype(type).pinned_memory(true));
  } catch (const c10::Error& error) {
    static std::atomic<bool> is_said = false;
    if (!is_said.exchange(true)) {
      log_warn("host memory cannot be page-locked, so copies to and from the GPU are slower: {}",
               error.what_without_backtrace());
    }
    return at::empty({numel}, type);
  }
}

}  // namespace tessera::kernels
