// An optimizer's update as its loops see it: pointers, sizes, constants. Known to CPU and CUDA files alike. (no torch)
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/quantity.h"

namespace tessera::kernels {

inline constexpr std::size_t kMostStates = 4;

struct FlatUpdate {
  float* params = nullptr;  // float32: the master values; null if there is a remainder
  const void* grads = nullptr;
  NumberType grad_type = NumberType::kFloat32;
  void* copy = nullptr;  // receives the new values, rounded; null: none, and its type does not matter
  NumberType copy_type = NumberType::kFloat32;
  std::int64_t numel = 0;
  float* states[kMostStates] = {};  // in the descriptor's order; null where there is none
  // With the copy, which is then bfloat16, the master values (flat_buffers.h).
  std::int16_t* remainder = nullptr;
  void* stream = nullptr;  // CUDA's
};

// `constants` is the optimizer's own struct, computed once per update in float64 and rounded to float32, so that every
// processor uses the same.
using FlatUpdateFunction = void (*)(const FlatUpdate& flat, const void* constants);

// A .cu file makes one at namespace scope; it is known when libtessera_cuda.so has been loaded.
struct CudaUpdate {
  CudaUpdate(const char* optimizer, FlatUpdateFunction update);
};

// A step's constants of AdamW and Adam.
struct AdamWConstants {
  float gradient_scale;
  float l2;    // weight decay added to the gradient
  float keep;  // 1 - learning_rate * weight_decay, on the parameter
  float one_minus_beta1, beta2, one_minus_beta2;
  float inverse_root;  // 1 / sqrt(1 - beta2^step)
  float eps;
  float minus_step_size;  // -learning_rate / (1 - beta1^step)
};

// Of Lion.
struct LionConstants {
  float gradient_scale;
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float keep;  // 1 - learning_rate * weight_decay, on the parameter
  float minus_learning_rate;
};

// Of SGD.
struct SgdConstants {
  float gradient_scale;
  float weight_decay;
  float momentum, undampened;  // undampened: 1 - dampening, 1 at the first step
  float keep_momentum;         // momentum, or 0 at the first step
  bool has_momentum, nesterov;
  float minus_learning_rate;
};

}  // namespace tessera::kernels
