// How a job's loaders run, from the settings.
#pragma once

#include <c10/core/Device.h>

#include "data/loading/prefetch_loader.h"
#include "settings/train_settings.h"

namespace tessera {

// -1 workers: as many as libtorch may use threads, since a GPU leaves them free, at most 16 and no more than a gibibyte
// of batches, or two, keeps busy; none where the threads compute themselves. `batch_bytes`: of the largest batch.
PrefetchOptions loader_options(const DataSettings& data, at::Device device, std::int64_t batch_bytes);

}  // namespace tessera
