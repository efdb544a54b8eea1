// Process-wide numerics of a run: TF32, and determinism.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "settings/train_settings.h"

namespace tessera {

// Call it before the first operation on the device. Returns notes for the user: on a CPU neither has an effect.
std::vector<std::string> set_numerics(const TrainSettings& settings, at::Device device);

}  // namespace tessera
