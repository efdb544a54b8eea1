#include "core/freed_memory.h"

#include <climits>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tessera {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestAllowed = 32 << 20;  // glibc's largest; a bigger block is still mapped and unmapped by itself
  mallopt(M_MMAP_THRESHOLD, kLargestAllowed);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

}  // namespace tessera
