// Page-locked host memory: copies to and from a GPU are fast and do not block.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tessera::kernels {

// [numel], or pageable where the system refuses to lock it: copies are as right then, only slower. Needs a GPU.
at::Tensor locked_or_pageable(std::int64_t numel, at::ScalarType type);

}  // namespace tessera::kernels
