// How many bytes of tensors are alive on the CPU, to the byte: the process's resident memory says nothing, since freed
// pages stay.
#pragma once

#include <cstdint>

namespace tessera {

// From the first call on, all CPU tensors of the process are counted.
void start_counting_cpu_memory();
std::int64_t live_cpu_bytes();
std::int64_t peak_cpu_bytes();  // since the start or the last reset
void reset_peak_cpu_bytes();    // to what is alive now

// The same of what the calling thread has taken, whoever gives it back: of one rank, where ranks are threads.
std::int64_t live_cpu_bytes_of_thread();
std::int64_t peak_cpu_bytes_of_thread();
void reset_peak_cpu_bytes_of_thread();

}  // namespace tessera
