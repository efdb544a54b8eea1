// How a job's loaders run, from the settings.
#pragma once

#include <c10/core/Device.h>

#include "data/loading/prefetch_loader.h"
#include "settings/train_settings.h"

namespace tessera {

// -1 workers: as many as libtorch may use threads, since a GPU leaves them free; none where they compute themselves.
PrefetchOptions loader_options(const DataSettings& data, at::Device device);

}  // namespace tessera
