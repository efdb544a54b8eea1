#include "core/thread_count.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

void check_thread_count(const Environment& environment) {
  const auto given = environment.find("OMP_NUM_THREADS");
  if (!given) return;
  // More than four per processor only wait for each other; a host's limits allow a thousand.
  const long long most = std::max<long long>(1024, 4 * sysconf(_SC_NPROCESSORS_CONF));
  for (const std::string& part : split(*given, ',')) {
    const auto number = parse_integer(trim(part));
    if (number && *number >= 1 && *number <= most) continue;
    throw UsageError(fmt::format("OMP_NUM_THREADS={} in the environment: expected a number of threads from 1 to {}",
                                 printable(*given), most));
  }
}

}  // namespace tessera
