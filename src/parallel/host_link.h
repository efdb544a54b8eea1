// The way between a device's memory and the host's: buffers on the host, and copies beside the computation.
//
// Copies begin after all that the current stream has been given, run on streams of the link's own, one each way, and
// are waited for by the Transfer. Where the device is a CPU a copy is done when the call returns. A link outlives its
// transfers; one thread at a time, but Transfer::wait may be called from any.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>

namespace tessera {

// A copy under way; made by a HostLink. A default one is done.
class Transfer {
 public:
  Transfer() = default;
  explicit Transfer(std::shared_ptr<c10::Event> done) : done_(std::move(done)) {}

  void wait() const;         // the calling thread
  void order_after() const;  // what the current stream is given from now on
  bool is_pending() const { return done_ != nullptr; }

 private:
  std::shared_ptr<c10::Event> done_;
};

class HostLink {
 public:
  // `pins`: host buffers are page-locked, which makes copies fast and truly asynchronous. Of no use to a CPU.
  HostLink(at::Device device, bool pins);

  at::Tensor host_empty(std::int64_t numel, at::ScalarType type) const;

  Transfer to_host(const at::Tensor& to, const at::Tensor& from) const { return copy(to, from, download_); }
  Transfer to_device(const at::Tensor& to, const at::Tensor& from) const { return copy(to, from, upload_); }

  // What is begun on it (a collective) comes after the copies to the device so far, and the computation does not wait.
  // None on a CPU.
  const std::optional<c10::Stream>& upload_stream() const { return upload_; }

 private:
  Transfer copy(const at::Tensor& to, const at::Tensor& from, const std::optional<c10::Stream>& stream) const;

  at::Device device_;
  bool pins_;
  std::optional<c10::Stream> download_, upload_;  // none on a CPU
};

}  // namespace tessera
