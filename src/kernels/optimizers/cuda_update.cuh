// What the optimizers' CUDA kernels share: four numbers per thread, read and written as packs.
#pragma once

#include "kernels/cuda_common.cuh"
#include "kernels/optimizers/flat_update.h"

namespace tessera::kernels {

// Multiplications and additions are fused where it is written and nowhere else, as on the CPU (cpu_loops.h).
__device__ inline float scaled_gradient(float grad, float scale, float decay, float param) {
  const float scaled = __fmul_rn(grad, scale);
  return decay == 0.0f ? scaled : __fmaf_rn(decay, param, scaled);
}

// kSplit: the master values are the copy and the remainder together (flat_buffers.h).
enum class UpdateCopy { kNone, kRounded, kSplit };

__device__ inline float joined(__nv_bfloat16 copy, std::int16_t remainder) {
  return __uint_as_float((static_cast<unsigned>(__bfloat16_as_ushort(copy)) << 16) + static_cast<unsigned>(remainder));
}
__device__ inline __nv_bfloat16 split(float value, std::int16_t& remainder) {
  unsigned bits = __float_as_uint(value);
  if ((bits & 0x1ffffu) == 0x8000u) --bits;  // a tie that would be rounded down
  const __nv_bfloat16 copy = __float2bfloat16_rn(__uint_as_float(bits));
  remainder = static_cast<std::int16_t>(bits - (static_cast<unsigned>(__bfloat16_as_ushort(copy)) << 16));
  return copy;
}

template <int N, UpdateCopy kCopy, typename Step, typename G, typename C>
__device__ inline void update_pack(const FlatUpdate& flat, std::int64_t at, const G* grads, C* copies, Step step) {
  constexpr int kStates = Step::kNumStates;
  Pack<float, N> params, states[kStates == 0 ? 1 : kStates];
  Pack<C, N> copy;
  Pack<std::int16_t, N> remainder;
  const Pack<G, N> grad = load<N>(grads + at);
  if constexpr (kCopy == UpdateCopy::kSplit) {
    copy = load<N>(copies + at);
    remainder = load<N>(flat.remainder + at);
  } else {
    params = load<N>(flat.params + at);
  }
#pragma unroll
  for (int s = 0; s < kStates; ++s) states[s] = load<N>(flat.states[s] + at);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    float own[kStates == 0 ? 1 : kStates];
#pragma unroll
    for (int s = 0; s < kStates; ++s) own[s] = states[s].values[i];
    if constexpr (kCopy == UpdateCopy::kSplit) params.values[i] = joined(copy.values[i], remainder.values[i]);
    const float value = step(params.values[i], to_float(grad.values[i]), own);
#pragma unroll
    for (int s = 0; s < kStates; ++s) states[s].values[i] = own[s];
    params.values[i] = value;
    if constexpr (kCopy == UpdateCopy::kRounded) copy.values[i] = from_float<C>(value);
    if constexpr (kCopy == UpdateCopy::kSplit) copy.values[i] = split(value, remainder.values[i]);
  }
#pragma unroll
  for (int s = 0; s < kStates; ++s) store<N>(flat.states[s] + at, states[s]);
  if constexpr (kCopy == UpdateCopy::kSplit) {
    store<N>(flat.remainder + at, remainder);
  } else {
    store<N>(flat.params + at, params);
  }
  if constexpr (kCopy != UpdateCopy::kNone) store<N>(copies + at, copy);
}

constexpr int kUpdatePack = 4;

template <UpdateCopy kCopy, typename Step, typename G, typename C>
__global__ void update_packs(FlatUpdate flat, bool is_aligned, const G* grads, C* copies, Step step) {
  const std::int64_t begin = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kUpdatePack;
  if (is_aligned && begin + kUpdatePack <= flat.numel) {
    update_pack<kUpdatePack, kCopy>(flat, begin, grads, copies, step);
    return;
  }
  for (std::int64_t at = begin; at < begin + kUpdatePack && at < flat.numel; ++at) {
    update_pack<1, kCopy>(flat, at, grads, copies, step);
  }
}

// `step(value, gradient, states)` changes the states (Step::kNumStates) of a number and returns its new value.
template <typename Step>
void launch_update(const FlatUpdate& flat, Step step) {
  constexpr int kThreads = 256, kOfBlock = kThreads * kUpdatePack;
  const auto num_blocks = static_cast<unsigned>((flat.numel + kOfBlock - 1) / kOfBlock);
  const auto stream = static_cast<cudaStream_t>(flat.stream);
  const auto is_aligned_to = [](const void* pointer, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
  };
  bool is_aligned = is_aligned_to(flat.params, 16) && is_aligned_to(flat.grads, 16) && is_aligned_to(flat.copy, 8) &&
                    is_aligned_to(flat.remainder, 8);
  for (const float* state : flat.states) is_aligned = is_aligned && is_aligned_to(state, 16);
  with_type(flat.grad_type, [&](auto* type) {
    using G = std::remove_pointer_t<decltype(type)>;
    const auto* grads = static_cast<const G*>(flat.grads);
    auto* bfloats = static_cast<__nv_bfloat16*>(flat.copy);
    if (flat.remainder != nullptr) {
      update_packs<UpdateCopy::kSplit><<<num_blocks, kThreads, 0, stream>>>(flat, is_aligned, grads, bfloats, step);
    } else if (flat.copy == nullptr) {
      update_packs<UpdateCopy::kNone>
          <<<num_blocks, kThreads, 0, stream>>>(flat, is_aligned, grads, static_cast<__half*>(nullptr), step);
    } else if (flat.copy_type == NumberType::kBFloat16) {
      update_packs<UpdateCopy::kRounded><<<num_blocks, kThreads, 0, stream>>>(flat, is_aligned, grads, bfloats, step);
    } else {
      update_packs<UpdateCopy::kRounded>
          <<<num_blocks, kThreads, 0, stream>>>(flat, is_aligned, grads, static_cast<__half*>(flat.copy), step);
    }
  });
}

}  // namespace tessera::kernels
