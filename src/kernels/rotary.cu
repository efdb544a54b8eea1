#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kMostThreads = 256;

// Of cos or sin; N may be more than a word of 16 bytes holds.
template <int N>
__device__ inline void load_floats(const float* from, float (&to)[N]) {
  constexpr int kWord = N < 4 ? N : 4;
#pragma unroll
  for (int begin = 0; begin < N; begin += kWord) {
    const auto word = load<kWord>(from + begin);
#pragma unroll
    for (int n = 0; n < kWord; ++n) to[begin + n] = word.values[n];
  }
}

// A block handles one token. Each head has half / N packs of pairs, then packs that are copied.
template <typename T, int N>
__global__ void rotate(CudaRotary rotary) {
  const std::int64_t token = blockIdx.x;
  const int packs_of_pairs = rotary.half / N, packs = packs_of_pairs + (rotary.D - 2 * rotary.half) / N;
  const T* x = static_cast<const T*>(rotary.x) + token * rotary.token_stride;
  T* out = static_cast<T*>(rotary.out) + token * rotary.H * rotary.D;
  const float *cos = rotary.cos + token * rotary.half, *sin = rotary.sin + token * rotary.half;
  const float sign = rotary.back ? -1.0f : 1.0f;
  for (int i = static_cast<int>(threadIdx.x); i < rotary.H * packs; i += static_cast<int>(blockDim.x)) {
    const int head = i / packs, pack = i - head * packs;
    const T* from = x + head * rotary.head_stride;
    T* to = out + static_cast<std::int64_t>(head) * rotary.D;
    if (pack >= packs_of_pairs) {
      const int at = 2 * rotary.half + (pack - packs_of_pairs) * N;
      store<N>(to + at, load<N>(from + at));
      continue;
    }
    const int at = pack * N;
    const auto as = load<N>(from + at);
    const auto bs = load<N>(from + rotary.half + at);
    float c[N], s[N];
    load_floats(cos + at, c);
    load_floats(sin + at, s);
    Pack<T, N> first, second;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float a = to_float(as.values[n]), b = to_float(bs.values[n]), turn = sign * s[n];
      first.values[n] = from_float<T>(a * c[n] - b * turn);
      second.values[n] = from_float<T>(b * c[n] + a * turn);
    }
    store<N>(to + at, first);
    store<N>(to + rotary.half + at, second);
  }
}

template <typename T, int N>
void run(const CudaRotary& rotary) {
  const int items = rotary.H * (rotary.D - rotary.half) / N;
  const int threads = items < kMostThreads ? (items + 31) / 32 * 32 : kMostThreads;
  rotate<T, N><<<static_cast<unsigned>(rotary.T), static_cast<unsigned>(threads), 0, rotary.stream>>>(rotary);
}

}  // namespace

void rotary_cuda(const CudaRotary& rotary) {
  with_type(rotary.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int kWord = 16 / sizeof(T);
    rotary.aligned ? run<T, kWord>(rotary) : run<T, 1>(rotary);
  });
}

}  // namespace tessera::kernels
