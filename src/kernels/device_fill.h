// Fills a GPU's tensors with numbers that the host makes: threads make pieces in page-locked buffers, and each piece is
// copied while others are made.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace tessera::kernels {

// Calls make(begin, piece) for every piece of `to`, a flat tensor of a GPU, from libtorch's threads: `piece` is on the
// host, of `type`, and becomes to[begin, begin + piece.numel()). Pieces are `piece_numel` long, but for the last. Later
// work on the current stream sees the numbers.
void fill_device(const at::Tensor& to, at::ScalarType type, std::int64_t piece_numel,
                 c10::function_ref<void(std::int64_t begin, const at::Tensor& piece)> make);

// libtorch keeps page-locked memory for reuse: hundreds of MiB after this, on a host with many cores. Frees what no
// copy uses any more.
void free_fill_buffers(at::Device device);

// Page-locked host memory, with which copies to and from a GPU are fast and do not block: [numel], or pageable where
// the system refuses to lock it: copies are as right then, only slower. Needs a GPU.
at::Tensor locked_or_pageable(std::int64_t numel, at::ScalarType type);

}  // namespace tessera::kernels
