// Optimizer steps on the CPU, as pointers and sizes.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "kernels/optimizer_constants.h"

namespace tessera::kernels {

// `copy` null: none; its type is then ignored.
struct FlatStep {
  float* params;
  const void* grads;
  c10::ScalarType grad_type;
  void* copy;
  c10::ScalarType copy_type;
  std::int64_t numel;
};

void adamw_cpu(const FlatStep& flat, float* mean, float* square_mean, const AdamWConstants& constants);
void sgd_cpu(const FlatStep& flat, float* momentum, const SgdConstants& constants);
void block_square_sums_cpu(c10::ScalarType type, const void* values, std::int64_t numel, double* sums);

}  // namespace tessera::kernels
