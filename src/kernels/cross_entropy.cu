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

// One block, so that the order of addition is always the same.
__global__ void add_losses(const float* losses, std::int64_t num_rows, float* sum) {
  __shared__ float shared[32];
  float total = 0;
  for (std::int64_t row = threadIdx.x; row < num_rows; row += blockDim.x) total += losses[row];
  total = block_sum(total, shared);
  if (threadIdx.x == 0) *sum += total;
}

template <typename T, int N>
void run(const CudaRows& rows, void* logits, const std::int64_t* targets, float on_target, float on_every, float scale,
         bool to_gradient, float* losses) {
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
