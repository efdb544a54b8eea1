#include "kernels/cuda_common.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 256;

// The thread block at the first place of an id handles all of its rows.
template <typename T>
__global__ void add(std::int64_t num_rows, std::int64_t C, const std::int64_t* ids, const std::int64_t* order,
                    const T* rows, T* table) {
  const std::int64_t first = blockIdx.x, id = ids[first];
  if (first > 0 && ids[first - 1] == id) return;
  std::int64_t end = first + 1;
  while (end < num_rows && ids[end] == id) ++end;
  for (std::int64_t c = threadIdx.x; c < C; c += kThreads) {
    float sum = 0;
#pragma unroll 4
    for (std::int64_t i = first; i < end; ++i) sum += to_float(rows[order[i] * C + c]);
    T& to = table[id * C + c];
    to = from_float<T>(to_float(to) + to_float(from_float<T>(sum)));
  }
}

}  // namespace

void add_rows_cuda(const CudaRows& rows, const std::int64_t* ids, const std::int64_t* order, const void* values,
                   void* table) {
  with_type(rows.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    add<T><<<static_cast<unsigned>(rows.num_rows), kThreads, 0, rows.stream>>>(
        rows.num_rows, rows.C, ids, order, static_cast<const T*>(values), static_cast<T*>(table));
  });
}

}  // namespace tessera::kernels
