// The only file compiled with -fopenmp: libtorch's parallel_for is a template that is serial without it, and the
// precompiled header that the other files share is built without it.
#include "kernels/parallel.h"

#include <ATen/Parallel.h>

namespace tessera::kernels {

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body) {
  at::parallel_for(begin, end, grain, body);
}

}  // namespace tessera::kernels
