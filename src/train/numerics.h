// How a run's numbers come about, process-wide: TF32, and the same bits each time.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "settings/train_settings.h"

namespace tessera {

// Before the first operation on the device. Returns what there is to say about it: on a CPU neither changes anything.
std::vector<std::string> set_numerics(const TrainSettings& settings, at::Device device);

}  // namespace tessera
