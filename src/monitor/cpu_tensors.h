// Counts the bytes of live CPU tensors exactly. The process's resident memory cannot tell: freed pages stay resident.
#pragma once

#include <cstdint>

namespace tessera {

// From the first call on, all CPU tensors of the process are counted.
void start_counting_cpu_memory();
std::int64_t live_cpu_bytes();
std::int64_t peak_cpu_bytes();  // since the start or the last reset
void reset_peak_cpu_bytes();    // to what is alive now

// The same for what the calling thread allocated, whichever thread frees it: for one rank, if ranks are threads.
std::int64_t live_cpu_bytes_of_thread();
std::int64_t peak_cpu_bytes_of_thread();
void reset_peak_cpu_bytes_of_thread();

}  // namespace tessera
