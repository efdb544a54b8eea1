// Converts a run's TrainSettings into what TrainStep takes, and into the process's numerics.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "parallel/train_step.h"
#include "settings/train_settings.h"

namespace tessera {

// With AMP, units are float32 whatever the model computes in. Unless the settings apply weight decay to everything,
// one-dimensional parameters (biases and norms) are exempt, as in Hugging Face's Trainer.
TrainStepOptions step_options(const TrainSettings& settings, const torch::nn::Module& model, at::Device device,
                              ParameterSource first_values = {});

// The units, each of which is gathered at once. Throws UsageError if the model has no units of a class.
std::vector<Unit> units_to_spread(const UnitModel& model, const WrapSettings& wrap);

// TF32 and determinism, of the whole process. Call it before the first operation on the device. Returns notes for the
// user: on a CPU neither has an effect.
std::vector<std::string> set_numerics(const TrainSettings& settings, at::Device device);

}  // namespace tessera
