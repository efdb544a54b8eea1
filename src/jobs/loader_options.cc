#include "jobs/loader_options.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace tessera {

PrefetchOptions loader_options(const DataSettings& data, at::Device device) {
  const int automatic = device.is_cpu() ? 0 : at::get_num_threads();
  const int num_workers = data.num_workers < 0 ? automatic : data.num_workers;
  return {.num_workers = num_workers,
          .num_ahead = std::max<std::int64_t>(1, std::int64_t{num_workers} * data.prefetch_factor)};
}

}  // namespace tessera
