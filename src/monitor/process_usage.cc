#include "monitor/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>

namespace tessera {

ProcessUsage read_process_usage() {
  ProcessUsage usage;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"), std::fclose);
  long long num_pages = 0, num_resident = 0;
  if (file && std::fscanf(file.get(), "%lld %lld", &num_pages, &num_resident) == 2) {
    usage.resident_bytes = num_resident * sysconf(_SC_PAGESIZE);
  }
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0) usage.peak_resident_bytes = std::int64_t{used.ru_maxrss} * 1024;
  // The kernel updates its own peak lazily.
  usage.peak_resident_bytes = std::max(usage.peak_resident_bytes, usage.resident_bytes);
  timespec time{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0) {
    usage.cpu_seconds = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  return usage;
}

}  // namespace tessera
