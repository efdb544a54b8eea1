// The only file compiled with -fopenmp: libtorch's parallel_for is a template that is serial without it, and the
// precompiled header that the other files share is built without it.
#include "kernels/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

namespace tessera::kernels {

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body) {
  at::parallel_for(begin, end, grain, body);
}

void parallel_parts(std::int64_t begin, std::int64_t end, std::int64_t part,
                    c10::function_ref<void(std::int64_t, std::int64_t)> body) {
  const std::int64_t num_parts = (end - begin + part - 1) / part;
  std::atomic<std::int64_t> next{0};
  at::parallel_for(0, std::min<std::int64_t>(num_parts, at::get_num_threads()), 1, [&](std::int64_t, std::int64_t) {
    for (std::int64_t at; (at = next.fetch_add(1, std::memory_order_relaxed)) < num_parts;) {
      body(begin + at * part, std::min(end, begin + (at + 1) * part));
    }
  });
}

}  // namespace tessera::kernels
