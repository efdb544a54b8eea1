// What offloading needs: copies between a device's memory and the host's that overlap with computation, the buffers on
// the host, and the background thread that runs updates there.
//
// Copies start after all work queued on the current stream and run on the link's own streams, one each way; a Transfer
// waits for one. If the device is a CPU, a copy is done when the call returns. One thread at a time, but Transfer's
// wait and is_done may be called from any.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace tessera {

// A copy in flight, made by a HostLink. A default-constructed one is done.
class Transfer {
 public:
  Transfer() = default;
  explicit Transfer(std::shared_ptr<c10::Event> done) : done_(std::move(done)) {}

  // Done when all work queued on the device's current stream so far is.
  static Transfer of_current_stream(at::Device device);

  void wait() const;         // blocks the calling thread
  void order_after() const;  // later work on the current stream waits
  bool is_pending() const { return done_ != nullptr; }
  bool is_done() const;  // a question to the driver, if it is pending

 private:
  std::shared_ptr<c10::Event> done_;
};

class HostLink {
 public:
  // `pins`: host buffers are page-locked, which makes copies fast and truly asynchronous. No effect on a CPU.
  HostLink(at::Device device, bool pins);

  at::Tensor host_empty(std::int64_t numel, at::ScalarType type) const;

  Transfer to_host(const at::Tensor& to, const at::Tensor& from) const { return copy(to, from, download_); }
  Transfer to_device(const at::Tensor& to, const at::Tensor& from) const { return copy(to, from, upload_); }

  // Work started on it (a collective) runs after the copies to the device so far, without delaying the computation.
  // None on a CPU.
  const std::optional<c10::Stream>& upload_stream() const { return upload_; }

 private:
  Transfer copy(const at::Tensor& to, const at::Tensor& from, const std::optional<c10::Stream>& stream) const;

  at::Device device_;
  bool pins_;
  std::optional<c10::Stream> download_, upload_;  // none on a CPU
};

// One background thread for work on the host: runs offloaded updates.
class UpdateWorker {
 public:
  UpdateWorker();
  ~UpdateWorker();  // finishes all pending work
  UpdateWorker(const UpdateWorker&) = delete;
  UpdateWorker& operator=(const UpdateWorker&) = delete;

  // Work runs in the order in which it is given; but as long as the first waits for its input (`is_ready`, called from
  // the background, tells), the last that is ready goes ahead of it. The future is ready when `work` has returned, and
  // rethrows its exception. Call it from one thread.
  std::shared_future<void> begin(std::function<void()> work, std::function<bool()> is_ready);

 private:
  struct Task {
    std::packaged_task<void()> work;
    std::function<bool()> is_ready;
  };

  void loop();
  std::deque<Task>::iterator next();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tessera
