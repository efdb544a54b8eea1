#include "parallel/offload.h"

#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/device_fill.h"

namespace tessera {

using c10::impl::VirtualGuardImpl;

Transfer Transfer::of_current_stream(at::Device device) {
  if (device.is_cpu()) return {};
  auto done = std::make_shared<c10::Event>(device.type());
  done->record(VirtualGuardImpl(device.type()).getStream(device));
  return Transfer(std::move(done));
}

void Transfer::wait() const {
  if (done_) done_->synchronize();
}

bool Transfer::is_done() const {
  return !done_ || done_->query();
}

void Transfer::order_after() const {
  if (!done_) return;
  const VirtualGuardImpl guard(done_->device_type());
  done_->block(guard.getStream(done_->device()));
}

HostLink::HostLink(at::Device device, bool pins) : device_(device), pins_(pins && !device.is_cpu()) {
  if (device_.is_cpu()) return;
  const VirtualGuardImpl guard(device_.type());
  download_ = guard.getStreamFromGlobalPool(device_);
  upload_ = guard.getStreamFromGlobalPool(device_);
}

at::Tensor HostLink::host_empty(std::int64_t numel, at::ScalarType type) const {
  return pins_ ? kernels::locked_or_pageable(numel, type) : at::empty({numel}, type);
}

Transfer HostLink::copy(const at::Tensor& to, const at::Tensor& from, const std::optional<c10::Stream>& stream) const {
  if (!stream) {
    to.copy_(from);
    return {};
  }
  const VirtualGuardImpl guard(device_.type());
  c10::Event begin(device_.type());
  begin.record(guard.getStream(device_));
  begin.block(*stream);
  // The caching allocator must not reuse the device's side while the copy reads or writes it.
  const at::Tensor& on_device = to.is_cpu() ? from : to;
  guard.recordDataPtrOnStream(on_device.storage().data_ptr(), *stream);
  const c10::StreamGuard beside(*stream);
  to.copy_(from, /*non_blocking=*/true);
  return Transfer::of_current_stream(device_);
}

UpdateWorker::UpdateWorker() : thread_([this] { loop(); }) {}

UpdateWorker::~UpdateWorker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::shared_future<void> UpdateWorker::begin(std::function<void()> work, std::function<bool()> is_ready) {
  std::packaged_task<void()> task(std::move(work));
  std::shared_future<void> done = task.get_future().share();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(task), std::move(is_ready)});
  }
  changed_.notify_one();
  return done;
}

std::deque<UpdateWorker::Task>::iterator UpdateWorker::next() {
  const auto is_ready = [](const Task& task) {
    try {
      return task.is_ready();
    } catch (...) {
      return true;  // the work will meet the same error and report it
    }
  };
  if (is_ready(waiting_.front())) return waiting_.begin();
  const auto last = std::find_if(waiting_.rbegin(), waiting_.rend(), is_ready);
  return last == waiting_.rend() ? waiting_.begin() : std::prev(last.base());
}

void UpdateWorker::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const auto place = next();
    Task task = std::move(*place);
    waiting_.erase(place);
    lock.unlock();
    task.work();
    lock.lock();
  }
}

}  // namespace tessera
