#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <algorithm>

#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 512;

// The largest value so far, and the sum of exp(x - largest).
struct Running {
  float largest, sum;
};

__device__ inline Running join(Running a, Running b) {
  const float largest = fmaxf(a.largest, b.largest);
  if (largest == -INFINITY) return {largest, 0.0f};  // nothing seen yet: exp(-inf + inf) would be NaN
  return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

__device__ inline Running block_join(Running value) {
  __shared__ Running shared[32];
  for (int offset = 16; offset > 0; offset /= 2) {
    const Running other = {__shfl_xor_sync(0xffffffffu, value.largest, offset),
                           __shfl_xor_sync(0xffffffffu, value.sum, offset)};
    value = join(value, other);
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  Running total = shared[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) total = join(total, shared[warp]);
  return total;
}

// One block per row: one pass for the statistics, one to write the gradient in place of the logits.
template <typename T, int N>
__global__ void rows_of_logits(T* logits, const std::int64_t* targets, std::int64_t V, float on_target, float on_every,
                               float scale, bool to_gradient, float* losses) {
  __shared__ float shared[32];
  T* row = logits + static_cast<std::int64_t>(blockIdx.x) * V;
  const std::int64_t target = targets[blockIdx.x];
  const float at_target = to_float(row[target]);
  Running running = {-INFINITY, 0.0f};
  float total = 0;
  for (std::int64_t v = static_cast<std::int64_t>(threadIdx.x) * N; v < V;
       v += static_cast<std::int64_t>(blockDim.x) * N) {
    const auto xs = load<N>(row + v);
    Running pack = {to_float(xs.values[0]), 0.0f};
#pragma unroll
    for (int n = 1; n < N; ++n) pack.largest = fmaxf(pack.largest, to_float(xs.values[n]));
#pragma unroll
    for (int n = 0; n < N; ++n) {
      pack.sum += __expf(to_float(xs.values[n]) - pack.largest);
      total += to_float(xs.values[n]);
    }
    running = join(running, pack);
  }
  running = block_join(running);
  const float logsumexp = running.largest + logf(running.sum);
  float smoothing = 0;
  if (on_every > 0) smoothing = on_every * (static_cast<float>(V) * logsumexp - block_sum(total, shared));
  if (threadIdx.x == 0) losses[blockIdx.x] = on_target * (logsumexp - at_target) + smoothing;
  if (!to_gradient) return;
  __syncthreads();  // every thread has read the target's logit
  for (std::int64_t v = static_cast<std::int64_t>(threadIdx.x) * N; v < V;
       v += static_cast<std::int64_t>(blockDim.x) * N) {
    auto xs = load<N>(row + v);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float hit = v + n == target ? on_target : 0.0f;
      xs.values[n] = from_float<T>(scale * (__expf(to_float(xs.values[n]) - logsumexp) - on_every - hit));
    }
    store<N>(row + v, xs);
  }
}

// The same with a cluster of blocks per row, whose shared memories together hold the row: it is read once.
template <typename T, int N>
__global__ void rows_in_clusters(T* logits, const std::int64_t* targets, std::int64_t V, float on_target,
                                 float on_every, float scale, bool to_gradient, float* losses) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float shared[32];
  __shared__ Running of_block;
  __shared__ float total_of_block;
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned num_blocks = cluster.num_blocks();
  const std::int64_t number = blockIdx.x / num_blocks, target = targets[number];
  const std::int64_t num_packs = V / N, per_block = (num_packs + num_blocks - 1) / num_blocks;
  const std::int64_t first = cluster.block_rank() * per_block;
  const int num_own = static_cast<int>(max(min(per_block, num_packs - first), std::int64_t{0}));
  T* const row = logits + number * V + first * N;
  T* const own = reinterpret_cast<T*>(memory);
  // A thread reads only what it has copied itself.
  for (int p = threadIdx.x; p < num_own; p += blockDim.x) __pipeline_memcpy_async(own + p * N, row + p * N, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  Running running = {-INFINITY, 0.0f};
  float total = 0;
  for (int p = threadIdx.x; p < num_own; p += blockDim.x) {
    const auto xs = load<N>(own + p * N);
#pragma unroll
    for (int n = 0; n < N; ++n) running.largest = fmaxf(running.largest, to_float(xs.values[n]));
  }
  for (int p = threadIdx.x; p < num_own; p += blockDim.x) {
    const auto xs = load<N>(own + p * N);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      running.sum += __expf(to_float(xs.values[n]) - running.largest);
      total += to_float(xs.values[n]);
    }
  }
  running = block_join(running);
  if (on_every > 0) total = block_sum(total, shared);
  if (threadIdx.x == 0) {
    of_block = running;
    total_of_block = total;
  }
  cluster.sync();
  running = {-INFINITY, 0.0f};
  total = 0;
  for (unsigned block = 0; block < num_blocks; ++block) {
    running = join(running, *cluster.map_shared_rank(&of_block, block));
    total += *cluster.map_shared_rank(&total_of_block, block);
  }
  const float logsumexp = running.largest + logf(running.sum);
  const std::int64_t target_here = target - first * N;
  if (threadIdx.x == 0 && target_here >= 0 && target_here < std::int64_t{num_own} * N) {
    const float smoothing = on_every > 0 ? on_every * (static_cast<float>(V) * logsumexp - total) : 0.0f;
    losses[number] = on_target * (logsumexp - to_float(own[target_here])) + smoothing;
  }
  for (int p = threadIdx.x; to_gradient && p < num_own; p += blockDim.x) {
    auto xs = load<N>(own + p * N);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float hit = std::int64_t{p} * N + n == target_here ? on_target : 0.0f;
      xs.values[n] = from_float<T>(scale * (__expf(to_float(xs.values[n]) - logsumexp) - on_every - hit));
    }
    store<N>(row + p * N, xs);
  }
  cluster.sync();  // no block ends while another reads its shared memory
#endif
}

// The dynamic shared memory that a block of the kernel may have on the current device, which is then allowed to it. 0:
// the device has no clusters, or the kernel was compiled for older ones, and is empty.
template <typename Kernel>
std::int64_t most_shared_bytes(Kernel kernel) {
  int device = 0, major = 0, of_block = 0;
  cudaFuncAttributes attributes{};
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (major < 9 || cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess || attributes.ptxVersion < 90) return 0;
  const int most = of_block - static_cast<int>(attributes.sharedSizeBytes);
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most) == cudaSuccess ? most : 0;
}

// Blocks of a cluster that hold a row of so many 16-byte words, as few as leave room for three blocks on a processor,
// or 8; 0: the row is too long.
int cluster_size(std::int64_t num_words, std::int64_t most_bytes) {
  constexpr std::int64_t kThird = 64 << 10;
  for (const int size : {1, 2, 4, 8}) {
    if ((num_words + size - 1) / size * 16 <= (size < 8 ? std::min(kThird, most_bytes) : most_bytes)) return size;
  }
  return 0;
}

// One block, so that the order of addition is always the same.
__global__ void add_losses(const float* losses, std::int64_t num_rows, float* sum) {
  __shared__ float shared[32];
  float total = 0;
  for (std::int64_t row = threadIdx.x; row < num_rows; row += blockDim.x) total += losses[row];
  total = block_sum(total, shared);
  if (threadIdx.x == 0) *sum += total;
}

template <typename T, int N>
bool run_in_clusters(const CudaRows& rows, void* logits, const std::int64_t* targets, float on_target, float on_every,
                     float scale, bool to_gradient, float* losses) {
  const auto kernel = rows_in_clusters<T, N>;
  static const std::int64_t most_bytes = most_shared_bytes(kernel);  // a process uses one GPU
  const std::int64_t num_words = rows.C / N;
  const int size = cluster_size(num_words, most_bytes);
  if (size == 0) return false;
  cudaLaunchAttribute of_cluster{};
  of_cluster.id = cudaLaunchAttributeClusterDimension;
  of_cluster.val.clusterDim.x = static_cast<unsigned>(size);
  of_cluster.val.clusterDim.y = of_cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(rows.num_rows * size));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>((num_words + size - 1) / size * 16);
  config.stream = rows.stream;
  config.attrs = &of_cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, static_cast<T*>(logits), targets, rows.C, on_target, on_every, scale, to_gradient,
                     losses);
  return true;
}

template <typename T, int N>
void run(const CudaRows& rows, void* logits, const std::int64_t* targets, float on_target, float on_every, float scale,
         bool to_gradient, float* losses) {
  if constexpr (N > 1) {
    if (run_in_clusters<T, N>(rows, logits, targets, on_target, on_every, scale, to_gradient, losses)) return;
  }
  rows_of_logits<T, N><<<static_cast<unsigned>(rows.num_rows), kThreads, 0, rows.stream>>>(
      static_cast<T*>(logits), targets, rows.C, on_target, on_every, scale, to_gradient, losses);
}

}  // namespace

void cross_entropy_cuda(const CudaRows& rows, void* logits, const std::int64_t* targets, float on_target,
                        float on_every, float gradient_scale, bool to_gradient, float* sum, float* partial) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int kWord = 16 / sizeof(T);  // per 16-byte word; every row starts on a word only where V is a multiple
    const auto launch = rows.aligned && rows.C % kWord == 0 ? run<T, kWord> : run<T, 1>;
    launch(rows, logits, targets, on_target, on_every, gradient_scale, to_gradient, partial);
  });
  add_losses<<<1, 256, 0, rows.stream>>>(partial, rows.num_rows, sum);
}

}  // namespace tessera::kernels
