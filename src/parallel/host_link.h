// Copies between a device's memory and the host's that overlap with computation, and the buffers on the host.
//
// Copies start after all work queued on the current stream and run on the link's own streams, one each way; a Transfer
// waits for one. If the device is a CPU, a copy is done when the call returns. One thread at a time, but Transfer's
// wait and is_done may be called from any.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>

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

}  // namespace tessera
