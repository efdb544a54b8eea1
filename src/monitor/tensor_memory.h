// How many bytes the tensors of a process have taken at most.
//
// On a GPU what torch's caching allocator says was allocated (torch.cuda.max_memory_allocated): tensors, cuDNN's
// workspaces, no cache. On a CPU the bytes of all tensors alive at a time, counted as they are asked for: not what
// oneDNN and MPI take for themselves, nor the program.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace tessera {

// From the first call on, tensors of that device are counted; on a CPU one of before is not. Any thread.
void start_counting_tensors(c10::Device device);
// Since then.
std::int64_t peak_tensor_bytes(c10::Device device);

}  // namespace tessera
