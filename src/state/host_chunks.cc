#include "state/host_chunks.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tessera {
namespace {

constexpr std::int64_t kChunkBytes = std::int64_t{32} << 20;

std::string_view bytes_of(const at::Tensor& host) {
  return {static_cast<const char*>(host.const_data_ptr()), host.nbytes()};
}

}  // namespace

void HostChunks::for_each(const kernels::SplitFloats& values, const std::function<void(std::string_view)>& take) {
  const bool is_on_host = values.values.is_cpu();
  if (is_on_host && !values.remainder.defined()) return take(bytes_of(values.values));
  const std::int64_t numel = values.numel(),
                     at_once = kChunkBytes / static_cast<std::int64_t>(c10::elementSize(values.type()));
  const auto chunk_at = [&](std::int64_t at) { return values.narrow(at, std::min(at_once, numel - at)).joined(); };
  if (is_on_host) {
    for (std::int64_t at = 0; at < numel; at += at_once) take(bytes_of(chunk_at(at)));
    return;
  }
  const auto start = [&](std::int64_t at, at::Tensor& host) {
    if (!host.defined()) host = link_.host_empty(kChunkBytes, at::kByte);
    const at::Tensor bytes = chunk_at(at).view(at::kByte);
    return link_.to_host(host.narrow(0, 0, bytes.numel()), bytes);
  };
  Transfer coming = start(0, bounce_[0]);
  for (std::int64_t at = 0; at < numel; at += at_once) {
    coming.wait();
    const std::int64_t num_bytes = std::min(at_once, numel - at) * (kChunkBytes / at_once);
    const at::Tensor here = bounce_[0].narrow(0, 0, num_bytes);
    std::swap(bounce_[0], bounce_[1]);
    if (at + at_once < numel) coming = start(at + at_once, bounce_[0]);
    take(bytes_of(here));
  }
}

}  // namespace tessera
