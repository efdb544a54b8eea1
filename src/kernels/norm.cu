#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 256;

// A block of threads has one block of numbers.
template <typename T>
__global__ void square_sums(const T* values, std::int64_t n, std::int64_t block_numel, double* sums) {
  __shared__ double shared[kThreads];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * block_numel;
  const std::int64_t end = min(n, begin + block_numel);
  double total = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const double x = static_cast<double>(to_float(values[i]));
    total = fma(x, x, total);
  }
  shared[threadIdx.x] = total;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = shared[0];
}

}  // namespace

void block_square_sums_cuda(NumberType type, const void* values, std::int64_t numel, std::int64_t block_numel,
                            double* sums, cudaStream_t stream) {
  with_type(type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    square_sums<<<static_cast<unsigned>((numel + block_numel - 1) / block_numel), kThreads, 0, stream>>>(
        static_cast<const T*>(values), numel, block_numel, sums);
  });
}

}  // namespace tessera::kernels
