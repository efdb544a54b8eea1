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

constexpr int kAddingThreads = 1024;

// A block of threads has a unit. Thread t adds blocks t, t + 1024, ... of the unit, counted through its parts; then the
// threads' sums are added as a tree. Blocks of padding, at the unit's end, are zero and change nothing.
__global__ void add_unit(const double* sums, std::int64_t num_parts, std::int64_t width, const std::int64_t* begins,
                         double* of_units) {
  __shared__ double shared[kAddingThreads];
  const std::int64_t begin = begins[blockIdx.x], blocks = begins[blockIdx.x + 1] - begin;
  double total = 0;
  for (std::int64_t i = threadIdx.x; i < num_parts * blocks; i += kAddingThreads) {
    total += sums[i / blocks * width + begin + i % blocks];
  }
  shared[threadIdx.x] = total;
  for (int half = kAddingThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0) of_units[blockIdx.x] = shared[0];
}

__global__ void add_in_order(const double* of_units, std::int64_t num_units, const double* sums, std::int64_t num_parts,
                             std::int64_t width, double* total) {
  double sum = 0;
  for (std::int64_t i = 0; i < num_units; ++i) sum += of_units[i];
  total[0] = sum;
  for (std::int64_t part = 0; part < num_parts; ++part) total[1 + part] = sums[(part + 1) * width - 1];
}

}  // namespace

void add_units_cuda(const double* sums, std::int64_t num_parts, std::int64_t width, const std::int64_t* begins,
                    std::int64_t num_units, double* of_units, double* total, cudaStream_t stream) {
  add_unit<<<static_cast<unsigned>(num_units), kAddingThreads, 0, stream>>>(sums, num_parts, width, begins, of_units);
  add_in_order<<<1, 1, 0, stream>>>(of_units, num_units, sums, num_parts, width, total);
}

void block_square_sums_cuda(NumberType type, const void* values, std::int64_t numel, std::int64_t block_numel,
                            double* sums, cudaStream_t stream) {
  with_type(type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    square_sums<<<static_cast<unsigned>((numel + block_numel - 1) / block_numel), kThreads, 0, stream>>>(
        static_cast<const T*>(values), numel, block_numel, sums);
  });
}

}  // namespace tessera::kernels
