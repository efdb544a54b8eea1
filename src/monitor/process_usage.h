// What this process uses of the host.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace tessera {

struct ProcessUsage {
  std::int64_t resident_bytes = 0;       // 0: unknown
  std::int64_t peak_resident_bytes = 0;  // since it started
  double cpu_seconds = 0;                // of all its threads
};

ProcessUsage read_process_usage();

// The peak number of bytes that a process's tensors used.
//
// On a GPU: what torch's caching allocator reports as allocated (torch.cuda.max_memory_allocated), that is tensors and
// cuDNN's workspaces, but no cache. On a CPU: the bytes of all live tensors, counted as they are allocated, without
// what oneDNN, MPI and the program itself use.

// From the first call on, tensors of that device are counted; on a CPU, earlier ones are not. Safe from any thread.
void start_counting_tensors(c10::Device device);
// Since the first call.
std::int64_t peak_tensor_bytes(c10::Device device);

}  // namespace tessera
