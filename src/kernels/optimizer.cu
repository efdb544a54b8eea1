#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 256;

// Multiplications and additions are fused only where written so, as on the CPU (optimizer_cpu.cc).
__device__ inline float scaled_gradient(float grad, float scale, float decay, float param) {
  const float scaled = __fmul_rn(grad, scale);
  return decay == 0.0f ? scaled : __fmaf_rn(decay, param, scaled);
}

template <typename G, typename C, bool kCopies>
__global__ void adamw(float* params, const G* grads, C* copy, float* mean, float* square_mean, std::int64_t n,
                      AdamWConstants k) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float old = params[i], old_mean = mean[i];
  const float g = scaled_gradient(to_float(grads[i]), k.gradient_scale, k.l2, old);
  const float m = __fmaf_rn(__fsub_rn(g, old_mean), k.one_minus_beta1, old_mean);
  const float v = __fmaf_rn(__fmul_rn(k.one_minus_beta2, g), g, __fmul_rn(k.beta2, square_mean[i]));
  const float denominator = __fmaf_rn(__fsqrt_rn(v), k.inverse_root, k.eps);
  const float p = __fmaf_rn(k.minus_step_size, __fdiv_rn(m, denominator), __fmul_rn(old, k.keep));
  mean[i] = m;
  square_mean[i] = v;
  params[i] = p;
  if (kCopies) copy[i] = from_float<C>(p);
}

template <typename G, typename C, bool kCopies>
__global__ void sgd(float* params, const G* grads, C* copy, float* momentum, std::int64_t n, SgdConstants k) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float g = scaled_gradient(to_float(grads[i]), k.gradient_scale, k.weight_decay, params[i]);
  float direction = g;
  if (k.has_momentum) {
    const float old = k.keep_momentum == 0.0f ? 0.0f : momentum[i];
    const float buffer = __fmaf_rn(k.keep_momentum, old, __fmul_rn(k.undampened, g));
    momentum[i] = buffer;
    direction = k.nesterov ? __fmaf_rn(k.momentum, buffer, g) : buffer;
  }
  const float p = __fmaf_rn(k.minus_learning_rate, direction, params[i]);
  params[i] = p;
  if (kCopies) copy[i] = from_float<C>(p);
}

// Calls f with typed pointers to gradients and copy.
template <typename F>
void with_types(const CudaFlatStep& flat, F f) {
  with_type(flat.grad_type, [&](auto* type) {
    using G = std::remove_pointer_t<decltype(type)>;
    const auto* grads = static_cast<const G*>(flat.grads);
    if (flat.copy == nullptr) return f(std::false_type{}, grads, static_cast<__half*>(nullptr));
    if (flat.copy_type == NumberType::kBFloat16) {
      return f(std::true_type{}, grads, static_cast<__nv_bfloat16*>(flat.copy));
    }
    f(std::true_type{}, grads, static_cast<__half*>(flat.copy));
  });
}

unsigned blocks_of(std::int64_t n) {
  return static_cast<unsigned>((n + kThreads - 1) / kThreads);
}

// One thread block per block of numbers.
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

void adamw_cuda(const CudaFlatStep& flat, float* mean, float* square_mean, const AdamWConstants& constants) {
  with_types(flat, [&](auto copies, const auto* grads, auto* copy) {
    using G = std::remove_const_t<std::remove_pointer_t<decltype(grads)>>;
    using C = std::remove_pointer_t<decltype(copy)>;
    adamw<G, C, decltype(copies)::value><<<blocks_of(flat.numel), kThreads, 0, flat.stream>>>(
        flat.params, grads, copy, mean, square_mean, flat.numel, constants);
  });
}

void sgd_cuda(const CudaFlatStep& flat, float* momentum, const SgdConstants& constants) {
  with_types(flat, [&](auto copies, const auto* grads, auto* copy) {
    using G = std::remove_const_t<std::remove_pointer_t<decltype(grads)>>;
    using C = std::remove_pointer_t<decltype(copy)>;
    sgd<G, C, decltype(copies)::value><<<blocks_of(flat.numel), kThreads, 0, flat.stream>>>(
        flat.params, grads, copy, momentum, flat.numel, constants);
  });
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
