// Causal attention over packed rows, forward and backward. A thread block has kTileRows queries (or keys) of one head
// of one row and walks over the tiles of keys (or queries) that they meet, two tiles in shared memory, one being read
// while the next arrives. In backward each tile of dK and dV and each tile of dQ has a block of its own: the scores are
// computed twice, and nothing is added by atomics, so that the same inputs always give the same bits. A key head that
// several query heads share meets the queries of one after another.
#include <atomic>

#include "kernels/attention_tiles.cuh"

namespace tessera::kernels {
namespace {

constexpr float kLowest = -1e30f;           // below every score; finite, so that a query may see none of a tile's keys
constexpr bool kKeepsLeft = TESSERA_WGMMA;  // elsewhere the registers are full

extern __shared__ __align__(kTileAlignment) unsigned char shared_bytes[];

// On Hopper as many blocks on a multiprocessor as shared memory and 128 registers a thread allow; elsewhere a thread
// needs more of them.
template <int D>
constexpr int kForwardBlocks = !TESSERA_WGMMA ? 1
                               : D <= 80      ? 4
                               : D <= 96      ? 3
                                              : 2;

template <typename T, int D>
__global__ void __launch_bounds__(kTileThreads, kForwardBlocks<D>) forward(CudaAttention a) {
  constexpr int kTile = kTileNumbers<D>;
  const Place place(a, blockIdx.z);
  const int head = static_cast<int>(blockIdx.y), key_head = head / (a.num_heads / a.num_kv_heads);
  const int tile = static_cast<int>(gridDim.x - 1 - blockIdx.x), first = tile * kTileRows;  // the longest first
  if (first >= place.length) return;
  T* const queries = reinterpret_cast<T*>(shared_bytes);
  T* const keys = queries + kTile;     // two tiles
  T* const values = keys + 2 * kTile;  // two tiles
  const auto all_keys = part_of<T, D>(a, 1, place, key_head), all_values = part_of<T, D>(a, 2, place, key_head);
  const auto start = [&](int index) {
    const int at = index * kTileRows, stage = index % 2;
    all_keys.start(keys + stage * kTile, at);
    all_values.start(values + stage * kTile, at);
  };
  const int first_met = first_tile_of_keys(first, a.window);
  part_of<T, D>(a, 0, place, head).start(queries, first);
  start(first_met);
  Scores score(a, head);
  LeftRows<T, D, kKeepsLeft> my_queries(queries);
  Accumulator result[D / 8] = {};
  float largest[2] = {kLowest, kLowest}, sum[2] = {};
  // kHides: keys that the query does not see
  const auto meet = [&](int index, auto hides) {
    constexpr bool kHides = decltype(hides)::value;
    const int ahead = (tile - index) * kTileRows;
    Accumulator scores[kScoreTiles];
    begin_rows_by_rows(scores, my_queries, keys + index % 2 * kTile);
    end_products<0>(scores);
    score.begin<false>(first, index * kTileRows);
    float new_largest[2] = {largest[0], largest[1]};
#pragma unroll
    for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float& s = scores[n].values[c];
        s = kHides && is_hidden(ahead + row_of(c) - column_of(n, c), a.window) ? -INFINITY : score.of<false>(s, n, c);
        new_largest[c / 2] = fmaxf(new_largest[c / 2], s);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      new_largest[half] = largest_of_row(new_largest[half]);
      const float shrink = power_of_two(largest[half] - new_largest[half]);
      largest[half] = new_largest[half];
      sum[half] *= shrink;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        result[n].values[2 * half] *= shrink;
        result[n].values[2 * half + 1] *= shrink;
      }
    }
#pragma unroll
    for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float& s = scores[n].values[c];
        s = power_of_two(s - largest[c / 2]);
        sum[c / 2] += s;
      }
    }
    begin_product<T, D>(result, scores, values + index % 2 * kTile);
    end_products<0>(result);
  };
  wait_for_tiles();
  my_queries.keep();
  for (int index = first_met; index <= tile; ++index) {
    if (index < tile) start(index + 1);
    if (tiles_hide(tile, index, a.window)) {
      meet(index, std::true_type());
    } else {
      meet(index, std::false_type());
    }
    wait_for_tiles();
  }
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16, rows_left = place.length - first - warp_row;
  sum[0] = sum_of_row(sum[0]);
  sum[1] = sum_of_row(sum[1]);
  store_rows<T, D>(result, 1.0f / sum[0], 1.0f / sum[1],
                   static_cast<T*>(a.out) + result_offset<D>(a, place, head, first + warp_row),
                   static_cast<std::int64_t>(a.num_heads) * D, rows_left);
  if (threadIdx.x % 4 == 0) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = first + row_of(2 * half);
      if (query < place.length) {
        a.logsumexp[static_cast<std::int64_t>(place.begin + query) * a.num_heads + head] =
            largest[half] + log2f(sum[half]);
      }
    }
  }
}

// delta: the sum of grad * out over a head, four lanes for each token's head.
template <typename T, int D>
__global__ void sum_products(CudaAttention a, std::int64_t num_heads_of_tokens) {
  constexpr int kLanes = 4, kNumbers = 8;  // a load
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / kLanes) + threadIdx.x / kLanes;
  float total = 0;
  if (i < num_heads_of_tokens) {
    const T *grad = static_cast<const T*>(a.grad) + i * D, *out = static_cast<const T*>(a.out) + i * D;
#pragma unroll
    for (int d = lane * kNumbers; d < D; d += kLanes * kNumbers) {
      const auto g = load<kNumbers>(grad + d), o = load<kNumbers>(out + d);
#pragma unroll
      for (int n = 0; n < kNumbers; ++n) total += to_float(g.values[n]) * to_float(o.values[n]);
    }
  }
  total = sum_of_row(total);
  if (i < num_heads_of_tokens && lane == 0) a.delta[i] = total;
}

// With kOfKeys the block has keys and values and meets queries and their gradients: it gives dK and dV. Else it has
// queries and meets keys: it gives dQ.
template <typename T, int D, bool kOfKeys>
__device__ void backward_of_tile(const CudaAttention& a, const Place& place, int head, int tile) {
  constexpr int kTile = kTileNumbers<D>;
  constexpr bool kKeeps = kKeepsLeft && D <= 80;  // for more there are no registers
  const int group = a.num_heads / a.num_kv_heads, first = tile * kTileRows;
  const int first_met = kOfKeys ? tile : first_tile_of_keys(first, a.window);
  const int last_met = kOfKeys ? last_tile_of_queries(first, a.window, place.length) : tile;
  const int num_met = last_met - first_met + 1, num_steps = kOfKeys ? num_met * group : num_met;
  T* const mine = reinterpret_cast<T*>(shared_bytes);  // keys, or queries
  T* const my_other = mine + kTile;                    // values, or the result's gradient
  T* const met = my_other + kTile;                     // two tiles: queries, or keys
  T* const met_other = met + 2 * kTile;                // two tiles: the result's gradient, or values
  float* const met_logsumexp = reinterpret_cast<float*>(met_other + 2 * kTile);  // kOfKeys: two times kTileRows
  float* const met_delta = met_logsumexp + 2 * kTileRows;

  const auto gradient = [&](int of_head) {
    return RowSource<T, D>(static_cast<const T*>(a.grad) + result_offset<D>(a, place, of_head, 0),
                           static_cast<std::int64_t>(a.num_heads) * D, place.length);
  };
  const auto statistic = [&](const float* of_tokens, int of_head, int query) {
    return of_tokens[static_cast<std::int64_t>(place.begin + query) * a.num_heads + of_head];
  };
  // The met head's tile `index`.
  const auto start = [&](int met_head, int index, int stage) {
    const int at = index * kTileRows;
    part_of<T, D>(a, kOfKeys ? 0 : 1, place, met_head).start(met + stage * kTile, at);
    (kOfKeys ? gradient(met_head) : part_of<T, D>(a, 2, place, met_head)).start(met_other + stage * kTile, at);
    if constexpr (kOfKeys) {
      if (threadIdx.x < kTileRows) {
        const int query = at + static_cast<int>(threadIdx.x);
        const bool exists = query < place.length;
        // exp2(x - infinity) is 0: a query that does not exist gives nothing
        met_logsumexp[stage * kTileRows + threadIdx.x] = exists ? statistic(a.logsumexp, met_head, query) : INFINITY;
        met_delta[stage * kTileRows + threadIdx.x] = exists ? statistic(a.delta, met_head, query) : 0.0f;
      }
    }
  };

  part_of<T, D>(a, kOfKeys ? 1 : 0, place, head).start(mine, first);
  (kOfKeys ? part_of<T, D>(a, 2, place, head) : gradient(head)).start(my_other, first);
  int met_head = kOfKeys ? head * group : head / group;
  start(met_head, first_met, 0);
  float my_logsumexp[2] = {INFINITY, INFINITY}, my_delta[2] = {};
  if constexpr (!kOfKeys) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = first + row_of(2 * half);
      if (query < place.length) {
        my_logsumexp[half] = statistic(a.logsumexp, head, query);
        my_delta[half] = statistic(a.delta, head, query);
      }
    }
  }
  Scores score(a, kOfKeys ? met_head : head);
  LeftRows<T, D, kKeeps> my_rows(mine), my_other_rows(my_other);
  Accumulator grad_mine[D / 8] = {}, grad_values[kOfKeys ? D / 8 : 1] = {};
  // kHides: keys that the query does not see
  const auto meet = [&](int index, int stage, auto hides) {
    constexpr bool kHides = decltype(hides)::value;
    const int ahead = (kOfKeys ? index - tile : tile - index) * kTileRows;
    Accumulator weights[kScoreTiles], grad_scores[kScoreTiles];
    begin_rows_by_rows(weights, my_rows, met + stage * kTile);
    begin_rows_by_rows(grad_scores, my_other_rows, met_other + stage * kTile);
    end_products<1>(weights);
#pragma unroll
    for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int column = column_of(n, c), after = kOfKeys ? column - row_of(c) : row_of(c) - column;
        const bool hides_it = kHides && is_hidden(ahead + after, a.window);
        const float logsumexp = kOfKeys ? met_logsumexp[stage * kTileRows + column] : my_logsumexp[c / 2];
        float& w = weights[n].values[c];
        w = hides_it ? 0.0f : power_of_two(score.template of<kOfKeys>(w, n, c) - logsumexp);
      }
    }
    if constexpr (kOfKeys) begin_product<T, D>(grad_values, weights, met_other + stage * kTile);
    end_products<kOfKeys ? 1 : 0>(grad_scores);
#pragma unroll
    for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float delta = kOfKeys ? met_delta[stage * kTileRows + column_of(n, c)] : my_delta[c / 2];
        float& g = grad_scores[n].values[c];
        g = weights[n].values[c] * (g - delta);
      }
    }
    begin_product<T, D>(grad_mine, grad_scores, met + stage * kTile);
    end_products<0>(grad_mine);
    end_products<0>(grad_values);
  };
  wait_for_tiles();
  my_rows.keep();
  my_other_rows.keep();
  for (int step = 0, index = first_met; step < num_steps; ++step) {
    const bool ends_head = index == last_met;
    const int next = ends_head ? first_met : index + 1;
    if (step + 1 < num_steps) start(met_head + (ends_head ? 1 : 0), next, (step + 1) % 2);
    score.template begin<kOfKeys>(first, index * kTileRows);
    if (kOfKeys ? tiles_hide(index, tile, a.window) : tiles_hide(tile, index, a.window)) {
      meet(index, step % 2, std::true_type());
    } else {
      meet(index, step % 2, std::false_type());
    }
    wait_for_tiles();
    index = next;
    if (kOfKeys && ends_head && step + 1 < num_steps) score = Scores(a, ++met_head);
  }
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int rows_left = place.length - first - warp_row;
  const auto target = [&](int part) {
    return static_cast<T*>(a.grad_parts[part]) +
           (place.begin + static_cast<std::int64_t>(first) + warp_row) * a.token_stride[part] +
           head * a.head_stride[part];
  };
  constexpr int kMine = kOfKeys ? 1 : 0;
  store_rows<T, D>(grad_mine, a.scale, a.scale, target(kMine), a.token_stride[kMine], rows_left);
  if constexpr (kOfKeys) store_rows<T, D>(grad_values, 1.0f, 1.0f, target(2), a.token_stride[2], rows_left);
}

// Where each query head has its own key head, the blocks of its keys and of its queries stand side by side and share
// what they read. Blocks of a key head that several share walk several times as far: all of them start before the
// others.
template <typename T, int D>
__global__ void __launch_bounds__(kTileThreads) backward(CudaAttention a) {
  const bool is_shared = a.num_kv_heads != a.num_heads;
  const int column = static_cast<int>(blockIdx.x), num_tiles = static_cast<int>(gridDim.x) / (is_shared ? 1 : 2);
  const int slot = static_cast<int>(is_shared ? blockIdx.z : blockIdx.y);
  const bool of_keys = is_shared ? slot < a.num_kv_heads : column % 2 == 0;
  const int head = is_shared && !of_keys ? slot - a.num_kv_heads : slot;
  const int index = is_shared ? column : column / 2;
  const Place place(a, is_shared ? blockIdx.y : blockIdx.z);
  const int tile = of_keys ? index : num_tiles - 1 - index;  // the longest walks first
  if (tile * kTileRows >= place.length) return;
  if (of_keys) {
    backward_of_tile<T, D, true>(a, place, head, tile);
  } else {
    backward_of_tile<T, D, false>(a, place, head, tile);
  }
}

// Calls f with a null pointer of the type and the head size as a type.
template <typename F>
void with_kind(const CudaAttention& a, F f) {
  const auto with_size = [&](auto* type) {
    switch (a.head_size) {
      case 64:
        return f(type, std::integral_constant<int, 64>());
      case 80:
        return f(type, std::integral_constant<int, 80>());
      case 96:
        return f(type, std::integral_constant<int, 96>());
      case 128:
        return f(type, std::integral_constant<int, 128>());
    }
  };
  with_half_type(a.type, with_size);
}

template <auto kernel>
void launch(const CudaAttention& a, dim3 grid, std::size_t bytes) {
  // Once on each device: the call takes as long as half a launch.
  static std::atomic<std::uint64_t> is_set_on{0};
  int device = 0;
  cudaGetDevice(&device);
  const std::uint64_t bit = std::uint64_t{1} << (device % 64);
  if ((is_set_on.load() & bit) == 0 || device >= 64) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    is_set_on.fetch_or(bit);
  }
  kernel<<<grid, kTileThreads, bytes, a.stream>>>(a);
}

unsigned num_tiles_of(const CudaAttention& a) {
  return static_cast<unsigned>((a.max_length + kTileRows - 1) / kTileRows);
}

// As backward() reads it.
dim3 backward_grid(const CudaAttention& a) {
  const auto heads = static_cast<unsigned>(a.num_heads), kv_heads = static_cast<unsigned>(a.num_kv_heads);
  const auto tiles = num_tiles_of(a), rows = static_cast<unsigned>(a.num_rows);
  return heads == kv_heads ? dim3(2 * tiles, heads, rows) : dim3(tiles, rows, kv_heads + heads);
}

}  // namespace

void attention_forward_cuda(const CudaAttention& a) {
  with_kind(a, [&](auto* type, auto size) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int D = decltype(size)::value;
    const dim3 grid(num_tiles_of(a), static_cast<unsigned>(a.num_heads), static_cast<unsigned>(a.num_rows));
    launch<forward<T, D>>(a, grid, 5 * kTileNumbers<D> * sizeof(T));
  });
}

void attention_backward_cuda(const CudaAttention& a) {
  with_kind(a, [&](auto* type, auto size) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int D = decltype(size)::value;
    const std::int64_t count = a.num_tokens * a.num_heads;
    constexpr int kThreads = 256, kPerBlock = kThreads / 4;
    sum_products<T, D><<<static_cast<unsigned>((count + kPerBlock - 1) / kPerBlock), kThreads, 0, a.stream>>>(a, count);
    launch<backward<T, D>>(a, backward_grid(a), 6 * kTileNumbers<D> * sizeof(T) + 4 * kTileRows * sizeof(float));
  });
}

}  // namespace tessera::kernels
