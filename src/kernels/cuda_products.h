// Matrix products in half types by cuBLASLt, with the plan of each shape kept: libtorch describes the matrices and asks
// for an algorithm at every call, which takes the host as long again as the launch. Only in libtessera_cuda.so.
#pragma once

#include <cstdint>

#include "core/number_type.h"

namespace tessera::kernels {

// out[m, n] = a[m, k] b[k, n] + bias[n] + plus[m, n], rows contiguous. A transposed factor is stored as [k, m] or
// [n, k].
struct CudaProduct {
  NumberType type;  // bf16 or fp16; sums are float32
  std::int64_t m, n, k;
  const void* a;
  bool a_is_transposed;
  const void* b;
  bool b_is_transposed;
  void* out;
  const void* bias = nullptr;  // null: none
  const void* plus = nullptr;  // null: none; may not be out
};

// On the current device and stream. The same shapes give the same bits, if all addresses are multiples of 16 bytes.
// Throws Error.
void multiply(const CudaProduct& product);

}  // namespace tessera::kernels
