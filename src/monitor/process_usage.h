// What this process uses of the host.
#pragma once

#include <cstdint>

namespace tessera {

struct ProcessUsage {
  std::int64_t resident_bytes = 0;       // 0: unknown
  std::int64_t peak_resident_bytes = 0;  // since it started
  double cpu_seconds = 0;                // of all its threads
};

ProcessUsage read_process_usage();

}  // namespace tessera
