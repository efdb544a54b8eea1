#include "jobs/loader_options.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace tessera {

PrefetchOptions loader_options(const DataSettings& data, at::Device device, std::int64_t batch_bytes) {
  if (data.num_workers >= 0) {
    return {.num_workers = data.num_workers,
            .num_ahead = std::max<std::int64_t>(1, std::int64_t{data.num_workers} * data.prefetch_factor)};
  }
  if (device.is_cpu()) return {.num_workers = 0, .num_ahead = 1};
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30, kFewest = 2, kMostWorkers = 16;
  const std::int64_t num_ahead =
      std::clamp(kMostBytes / std::max<std::int64_t>(1, batch_bytes), kFewest, kMostWorkers * data.prefetch_factor);
  const std::int64_t num_workers = std::min({std::int64_t{at::get_num_threads()}, num_ahead, kMostWorkers});
  return {.num_workers = static_cast<int>(num_workers), .num_ahead = num_ahead};
}

}  // namespace tessera
