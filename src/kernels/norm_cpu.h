// The CPU's sums of squares: pointers and sizes.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace tessera::kernels {

void block_square_sums_cpu(c10::ScalarType type, const void* values, std::int64_t numel, double* sums);

}  // namespace tessera::kernels
