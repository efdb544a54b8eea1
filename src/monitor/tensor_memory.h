// The peak number of bytes that a process's tensors used.
//
// On a GPU: what torch's caching allocator reports as allocated (torch.cuda.max_memory_allocated), that is tensors and
// cuDNN's workspaces, but no cache. On a CPU: the bytes of all live tensors, counted as they are allocated, without
// what oneDNN, MPI and the program itself use.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace tessera {

// From the first call on, tensors of that device are counted; on a CPU, earlier ones are not. Safe from any thread.
void start_counting_tensors(c10::Device device);
// Since the first call.
std::int64_t peak_tensor_bytes(c10::Device device);

}  // namespace tessera
