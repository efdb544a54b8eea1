#include "kernels/locked_memory.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <atomic>

#include "core/log.h"

namespace tessera::kernels {

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
