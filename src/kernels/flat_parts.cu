#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 256, kOfThread = 4;

// Each thread block handles a piece of one part.
template <typename From, typename To>
__global__ void put(CudaParts parts, To* flat) {
  int part = 0;
  while (blockIdx.x >= parts.end_block[part]) ++part;
  const unsigned first_block = part == 0 ? 0 : parts.end_block[part - 1];
  const From* from = static_cast<const From*>(parts.from[part]);
  To* to = flat + parts.offset[part];
  const bool adds = parts.adds[part];
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x - first_block) * kThreads * kOfThread + threadIdx.x;
  for (int turn = 0; turn < kOfThread && i < parts.numel[part]; ++turn, i += kThreads) {
    const float value = to_float(from[i]);
    to[i] = from_float<To>(adds ? to_float(to[i]) + value : value);
  }
}

}  // namespace

void put_parts_cuda(NumberType from, NumberType to, CudaParts parts, int num_parts, void* flat, cudaStream_t stream) {
  unsigned num_blocks = 0;
  for (int part = 0; part < num_parts; ++part) {
    num_blocks += static_cast<unsigned>((parts.numel[part] + kThreads * kOfThread - 1) / (kThreads * kOfThread));
    parts.end_block[part] = num_blocks;
  }
  if (num_blocks == 0) return;
  with_type(from, [&](auto* from_type) {
    with_type(to, [&](auto* to_type) {
      using From = std::remove_pointer_t<decltype(from_type)>;
      using To = std::remove_pointer_t<decltype(to_type)>;
      put<From, To><<<num_blocks, kThreads, 0, stream>>>(parts, static_cast<To*>(flat));
    });
  });
}

}  // namespace tessera::kernels
