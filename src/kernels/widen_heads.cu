#include "kernels/cuda_common.cuh"
#include "kernels/sizes.h"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 128;

// The position of a token in its sequence.
__device__ inline int position_of(int token, const std::int32_t* cu_seqlens, int num_sequences) {
  int low = 0, high = num_sequences;  // the last offset not after the token lies in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (cu_seqlens[middle] <= token) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return token - cu_seqlens[low];
}

// A block handles one token: its heads in q, k or v, as blockIdx.y says.
template <typename T>
__global__ void widen(WidenHeads heads) {
  const int token = static_cast<int>(blockIdx.x), which = static_cast<int>(blockIdx.y);
  const T* from = static_cast<const T*>(heads.from[which]) + token * heads.token_stride[which];
  T* to = static_cast<T*>(heads.to[which]) + static_cast<std::int64_t>(token) * heads.num_heads * heads.wide;
  const bool alibi = heads.slopes != nullptr;
  const float position =
      alibi && which == 1 ? static_cast<float>(position_of(token, heads.cu_seqlens, heads.num_sequences)) : 0.0f;
  for (int i = threadIdx.x; i < heads.num_heads * heads.wide; i += blockDim.x) {
    const int head = i / heads.wide, d = i % heads.wide;
    T value = from_float<T>(0.0f);
    if (d < heads.D) {
      value = from[head * heads.head_stride[which] + d];
    } else if (alibi && d < heads.D + kAlibiParts) {
      if (which == 0) value = from_float<T>(heads.in_q);
      if (which == 1) {
        float rest = position * (heads.slopes[head] * heads.factor);
        for (int part = heads.D; part <= d; ++part) {  // each holds what the earlier ones could not
          value = from_float<T>(rest);
          rest -= to_float(value);
        }
      }
    }
    to[i] = value;
  }
}

}  // namespace

void widen_heads_cuda(NumberType type, const WidenHeads& heads, std::int64_t num_tokens, cudaStream_t stream) {
  with_type(type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    widen<T><<<dim3(static_cast<unsigned>(num_tokens), 3), kThreads, 0, stream>>>(heads);
  });
}

}  // namespace tessera::kernels
