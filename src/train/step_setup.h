// The update step that a run's settings ask for: TrainSettings in, what TrainStep takes out.
#pragma once

#include <vector>

#include "parallel/train_step.h"
#include "settings/train_settings.h"

namespace tessera {

at::ScalarType scalar_type_of(NumberType type);

// Without first values. With AMP units are float32 whatever the model computes in. Unless the settings say that the
// weight decay takes all, it leaves out what has one dimension, biases and norms, as Hugging Face's Trainer does.
TrainStepOptions step_options(const TrainSettings& settings, const torch::nn::Module& model, at::Device device);

// What is gathered at a time. Throws UsageError where a class is none of the model's.
std::vector<Unit> units_to_spread(const UnitModel& model, const WrapSettings& wrap);

OptimizerChoice optimizer_choice(const OptimizerSettings& settings);

}  // namespace tessera
