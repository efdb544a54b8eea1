// A block has one row of the images it writes, its threads go along the row. Backward asks, for each value of x, which
// of the windows that contain it (at most four) took it: nothing is added by atomics.
#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 128;
using Places = Pack<std::uint8_t, kMaxPoolPack>;

// A row of an image, by its number among all rows; packs of channels are counted from the first.
struct Row {
  std::int64_t image;
  int y;

  __device__ explicit Row(int rows_an_image)
      : image(blockIdx.x / rows_an_image), y(static_cast<int>(blockIdx.x % rows_an_image)) {}
  __device__ std::int64_t pack_of(int rows_an_image, int at_y, int width, int at_x, int packs, int pack) const {
    return ((image * rows_an_image + at_y) * width + at_x) * packs + pack;
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads) forward(CudaMaxPool p) {
  const int packs = p.C / kMaxPoolPack;
  const Row row(p.pooled_H);
  for (int i = static_cast<int>(threadIdx.x); i < p.pooled_W * packs; i += kThreads) {
    const int x = i / packs, pack = i % packs;
    const int top = 2 * row.y - 1, left = 2 * x - 1;
    float largest[kMaxPoolPack];
    Places places;
#pragma unroll
    for (int n = 0; n < kMaxPoolPack; ++n) {
      largest[n] = -INFINITY;
      places.values[n] = static_cast<std::uint8_t>((top < 0) * 3 + (left < 0));  // the first that exists
    }
#pragma unroll
    for (int place = 0; place < 9; ++place) {
      const int at_y = top + place / 3, at_x = left + place % 3;
      if (at_y < 0 || at_y >= p.H || at_x < 0 || at_x >= p.W) continue;
      const auto values = load<kMaxPoolPack>(static_cast<const T*>(p.x) +
                                             row.pack_of(p.H, at_y, p.W, at_x, packs, pack) * kMaxPoolPack);
#pragma unroll
      for (int n = 0; n < kMaxPoolPack; ++n) {
        const float value = to_float(values.values[n]);
        if (value > largest[n] || isnan(value)) {
          largest[n] = value;
          places.values[n] = static_cast<std::uint8_t>(place);
        }
      }
    }
    Pack<T, kMaxPoolPack> out;
#pragma unroll
    for (int n = 0; n < kMaxPoolPack; ++n) out.values[n] = from_float<T>(largest[n]);
    const std::int64_t to = row.pack_of(p.pooled_H, row.y, p.pooled_W, x, packs, pack) * kMaxPoolPack;
    store<kMaxPoolPack>(static_cast<T*>(p.out) + to, out);
    store<kMaxPoolPack>(p.places + to, places);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) backward(CudaMaxPool p) {
  const int packs = p.C / kMaxPoolPack;
  const Row row(p.H);
  for (int i = static_cast<int>(threadIdx.x); i < p.W * packs; i += kThreads) {
    const int x = i / packs, pack = i % packs;
    float sums[kMaxPoolPack] = {};
    // Window w covers 2 w - 1 to 2 w + 1.
    for (int window_y = row.y / 2; window_y <= min((row.y + 1) / 2, p.pooled_H - 1); ++window_y) {
      for (int window_x = x / 2; window_x <= min((x + 1) / 2, p.pooled_W - 1); ++window_x) {
        const int place = (row.y - 2 * window_y + 1) * 3 + x - 2 * window_x + 1;
        const std::int64_t from = row.pack_of(p.pooled_H, window_y, p.pooled_W, window_x, packs, pack) * kMaxPoolPack;
        const auto grads = load<kMaxPoolPack>(static_cast<const T*>(p.grad) + from);
        const Places places = load<kMaxPoolPack>(static_cast<const std::uint8_t*>(p.places) + from);
#pragma unroll
        for (int n = 0; n < kMaxPoolPack; ++n) {
          if (places.values[n] == place) sums[n] += to_float(grads.values[n]);
        }
      }
    }
    Pack<T, kMaxPoolPack> grad_x;
#pragma unroll
    for (int n = 0; n < kMaxPoolPack; ++n) grad_x.values[n] = from_float<T>(sums[n]);
    store<kMaxPoolPack>(static_cast<T*>(p.grad_x) + row.pack_of(p.H, row.y, p.W, x, packs, pack) * kMaxPoolPack,
                        grad_x);
  }
}

}  // namespace

void max_pool_forward_cuda(const CudaMaxPool& p) {
  with_half_type(p.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    forward<T><<<static_cast<unsigned>(p.num_images * p.pooled_H), kThreads, 0, p.stream>>>(p);
  });
}

void max_pool_backward_cuda(const CudaMaxPool& p) {
  with_half_type(p.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    backward<T><<<static_cast<unsigned>(p.num_images * p.H), kThreads, 0, p.stream>>>(p);
  });
}

}  // namespace tessera::kernels
