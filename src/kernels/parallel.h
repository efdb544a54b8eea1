// Loops over libtorch's own threads.
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace tessera::kernels {

// Calls body(first, last) over parts of [begin, end), each at least `grain` long (except the last). The number of parts
// depends on the number of threads: a result must not depend on where the parts meet.
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body);

// The same over parts of `part`, which threads take as they come to them: one whose core is busy with something else
// does less and keeps nobody waiting.
void parallel_parts(std::int64_t begin, std::int64_t end, std::int64_t part,
                    c10::function_ref<void(std::int64_t, std::int64_t)> body);

}  // namespace tessera::kernels
