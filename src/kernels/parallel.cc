// The only file compiled with -fopenmp: libtorch's parallel_for is a template that is serial without it, and the
// precompiled header that the other files share is built without it.
#include "kernels/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

#ifdef TESSERA_TELLS_TSAN
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace tessera::kernels {
namespace {

// OpenMP's threads begin after what was before the loop and end before what is behind it. The thread sanitizer does not
// see that, because libgomp is not instrumented, so it is told.
class LoopOrder {
 public:
#ifdef TESSERA_TELLS_TSAN
  LoopOrder() {
    __tsan_release(&begin_);
  }
  void enter() {
    __tsan_acquire(&begin_);
  }
  void leave() {
    __tsan_release(&end_);
  }
  ~LoopOrder() {
    __tsan_acquire(&end_);
  }

 private:
  char begin_ = 0, end_ = 0;
#else
  void enter() {}
  void leave() {}
#endif
};

}  // namespace

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body) {
  LoopOrder order;
  at::parallel_for(begin, end, grain, [&](std::int64_t first, std::int64_t last) {
    order.enter();
    body(first, last);
    order.leave();
  });
}

void parallel_parts(std::int64_t begin, std::int64_t end, std::int64_t part,
                    c10::function_ref<void(std::int64_t, std::int64_t)> body) {
  const std::int64_t num_parts = (end - begin + part - 1) / part;
  std::atomic<std::int64_t> next{0};
  parallel_for(0, std::min<std::int64_t>(num_parts, at::get_num_threads()), 1, [&](std::int64_t, std::int64_t) {
    for (std::int64_t at; (at = next.fetch_add(1, std::memory_order_relaxed)) < num_parts;) {
      body(begin + at * part, std::min(end, begin + (at + 1) * part));
    }
  });
}

}  // namespace tessera::kernels
