// The bytes of tensors for a file. From a GPU they come in chunks, each while the one before is written, beside what
// else the GPU does.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <string_view>

#include "kernels/flat_buffers.h"
#include "parallel/offload.h"

namespace tessera {

class HostChunks {
 public:
  explicit HostChunks(at::Device device) : link_(device, /*pins=*/true) {}

  // Gives the bytes of flat numbers, on the device or the host, to `take`, in order; they are valid during the call.
  // What is queued on the current stream comes before the copies.
  void for_each(const kernels::SplitFloats& values, const std::function<void(std::string_view)>& take);

 private:
  HostLink link_;
  std::array<at::Tensor, 2> bounce_;  // page-locked; made when the first chunk comes from a GPU
};

}  // namespace tessera
