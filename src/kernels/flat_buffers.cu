#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kWarps = 8;  // of a thread block

// A warp has one block of numbers. Lane l adds words l, l + 32, ... of it, a word being what one load takes; then the
// lanes' sums are added as a tree.
template <typename T>
__global__ void square_sums(const T* values, std::int64_t n, std::int64_t block_numel, std::int64_t num_blocks,
                            bool aligned, double* sums) {
  constexpr int N = 16 / sizeof(T);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (block >= num_blocks) return;
  const std::int64_t begin = block * block_numel;
  const bool is_whole = aligned && begin + block_numel <= n;
  double total = 0;
  for (std::int64_t first = lane * N; first < block_numel; first += 32 * N) {
    Pack<T, N> xs;
    if (is_whole) {
      xs = load<N>(values + begin + first);
    } else {
      for (int i = 0; i < N; ++i) {
        const std::int64_t at = begin + first + i;
        xs.values[i] = at < n ? values[at] : from_float<T>(0.0f);
      }
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const double x = static_cast<double>(to_float(xs.values[i]));
      total = fma(x, x, total);
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(0xffffffffu, total, offset);
  if (lane == 0) sums[block] = total;
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

void add_units_cuda(const double* sums, std::int64_t num_parts, std::int64_t width, const std::int64_t* begins,
                    std::int64_t num_units, double* of_units, double* total, cudaStream_t stream) {
  add_unit<<<static_cast<unsigned>(num_units), kAddingThreads, 0, stream>>>(sums, num_parts, width, begins, of_units);
  add_in_order<<<1, 1, 0, stream>>>(of_units, num_units, sums, num_parts, width, total);
}

void block_square_sums_cuda(NumberType type, const void* values, std::int64_t numel, std::int64_t block_numel,
                            double* sums, cudaStream_t stream) {
  const std::int64_t num_blocks = (numel + block_numel - 1) / block_numel;
  const bool aligned = reinterpret_cast<std::uintptr_t>(values) % 16 == 0;
  with_type(type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    square_sums<<<static_cast<unsigned>((num_blocks + kWarps - 1) / kWarps), kWarps * 32, 0, stream>>>(
        static_cast<const T*>(values), numel, block_numel, num_blocks, aligned, sums);
  });
}

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
